// `sluice bench text`: how fast texts become ids, ids texts, and conversations prompts.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "apps/arguments.h"
#include "apps/commands.h"
#include "apps/input_limits.h"
#include "apps/model_place.h"
#include "apps/sample_text.h"
#include "apps/usage_error.h"
#include "base/error.h"
#include "base/file.h"
#include "text/chat_template.h"
#include "text/chat_template_inputs.h"
#include "text/tokenizer.h"

namespace sluice::apps {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kSampleBytes = 2'000'000;
constexpr size_t kWorstBytes = size_t{1} << 20;
constexpr int kMessages = 2000;
constexpr size_t kMessageBytes = 500;

struct BenchTokenizerOptions {
  std::string tokenizer;
  ModelPlace model;
  std::vector<std::string> files;
  int64_t rounds = 5, seed = 1;
  bool json = false;
};

struct Timing {
  std::string name;
  size_t bytes = 0, tokens = 0;
  double encode_seconds = 0, decode_seconds = 0;
  double encode_rate() const { return static_cast<double>(bytes) / encode_seconds / 1e6; }
  double decode_rate() const { return static_cast<double>(bytes) / decode_seconds / 1e6; }
};

struct Rendering {
  size_t bytes = 0;
  double seconds = 0;
};

struct Report {
  fs::path file;
  double load_seconds = 0;
  std::vector<Timing> texts, worst;
  std::optional<Rendering> rendering;  // absent without a template
};

// Of this thread: others on the machine don't count.
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// The shortest of `rounds` runs.
double best_seconds(int64_t rounds, const std::function<void()>& run) {
  double best = 0;
  for (int64_t round = 0; round < rounds; ++round) {
    const double start = processor_seconds();
    run();
    const double seconds = processor_seconds() - start;
    if (round == 0 || seconds < best) best = seconds;
  }
  return std::max(best, 1e-9);  // the clock's step
}

Timing time_text(const Tokenizer& tokenizer, int64_t rounds, const std::string& name,
                 const std::string& text) {
  Timing timing{name, text.size(), 0, 0, 0};
  std::vector<TokenId> ids;
  timing.encode_seconds = best_seconds(rounds, [&] { ids = tokenizer.encode(text); });
  timing.tokens = ids.size();
  std::string decoded;
  timing.decode_seconds = best_seconds(rounds, [&] { decoded = tokenizer.decode(ids); });
  return timing;
}

// A conversation of an agent's length: the user and the model take turns.
ChatTemplateInputs sample_conversation(uint64_t seed) {
  ChatTemplateInputs inputs;
  const std::string text = sample_prose(seed, kMessages * kMessageBytes);
  for (int i = 0; i < kMessages; ++i) {
    inputs.messages.push_back(
        {{"role", i % 2 == 0 ? "user" : "assistant"},
         {"content", text.substr(static_cast<size_t>(i) * kMessageBytes, kMessageBytes)}});
  }
  return inputs;
}

Rendering time_template(const ChatTemplate& chat_template, const BenchTokenizerOptions& options) {
  const ChatTemplateInputs inputs = sample_conversation(static_cast<uint64_t>(options.seed));
  Rendering rendering;
  rendering.seconds =
      best_seconds(options.rounds, [&] { rendering.bytes = chat_template.render(inputs).size(); });
  return rendering;
}

bool has_template(const fs::path& folder) {
  if (fs::exists(folder / "chat_template.jinja")) return true;
  const fs::path config = folder / "tokenizer_config.json";
  return fs::exists(config) && read_text_file(config).find("\"chat_template\"") != std::string::npos;
}

std::vector<std::pair<std::string, std::string>> texts_of(const BenchTokenizerOptions& options) {
  std::vector<std::pair<std::string, std::string>> texts;
  for (const std::string& file : options.files) {
    texts.emplace_back(file, read_input(file, kMostInputBytes));
    if (texts.back().second.empty()) throw Error(ErrorCode::kInvalidArgument, file + ": is empty");
  }
  if (!texts.empty()) return texts;
  const auto seed = static_cast<uint64_t>(options.seed);
  return {{"code, made up", sample_code(seed, kSampleBytes)},
          {"prose, made up", sample_prose(seed, kSampleBytes)}};
}

Report measure(const BenchTokenizerOptions& options) {
  const fs::path given = options.model.given() ? options.model.folder() : find_tokenizer(options.tokenizer);
  std::error_code ignored;
  Report report;
  const bool is_folder = fs::is_directory(given, ignored);
  report.file = is_folder ? given / "tokenizer.json" : given;
  const auto texts = texts_of(options);
  std::optional<Tokenizer> tokenizer;
  report.load_seconds = best_seconds(options.rounds, [&] {
    tokenizer.reset();
    tokenizer = Tokenizer::load(report.file);
  });
  const auto seed = static_cast<uint64_t>(options.seed);
  for (const auto& [name, text] : texts)
    report.texts.push_back(time_text(*tokenizer, options.rounds, name, text));
  for (const auto& [name, text] : worst_cases(seed, kWorstBytes)) {
    report.worst.push_back(time_text(*tokenizer, 1, name, text));
  }
  if (is_folder && has_template(given)) report.rendering = time_template(ChatTemplate::load(given), options);
  return report;
}

void print_timings(const std::vector<Timing>& timings) {
  for (const Timing& t : timings) {
    std::printf("%-24s %9zu %9zu %10.3f s %8.1f %9.1f\n", t.name.c_str(), t.bytes, t.tokens, t.encode_seconds,
                t.encode_rate(), t.decode_rate());
  }
}

void print_table(const Report& report) {
  std::printf("loading %s (%.1f MB): %.3f s\n\n", report.file.string().c_str(),
              static_cast<double>(fs::file_size(report.file)) / 1e6, report.load_seconds);
  std::printf("text                         bytes    tokens   encoding       MB/s   decoding MB/s\n");
  print_timings(report.texts);
  std::printf("\nworst cases (one round)\n");
  print_timings(report.worst);
  if (!report.rendering) return;
  std::printf("\nchat template: %d messages, %zu bytes: %.3f s, %.0f messages/s\n", kMessages,
              report.rendering->bytes, report.rendering->seconds, kMessages / report.rendering->seconds);
}

Json json_of(const std::vector<Timing>& timings) {
  Json list = Json::array();
  for (const Timing& t : timings) {
    list.push_back({{"name", t.name},
                    {"bytes", t.bytes},
                    {"tokens", t.tokens},
                    {"encode_seconds", t.encode_seconds},
                    {"encode_mb_per_second", t.encode_rate()},
                    {"decode_seconds", t.decode_seconds},
                    {"decode_mb_per_second", t.decode_rate()}});
  }
  return list;
}

void print_json(const Report& report) {
  Json json = {{"tokenizer", report.file.string()},
               {"load_seconds", report.load_seconds},
               {"texts", json_of(report.texts)},
               {"worst_cases", json_of(report.worst)}};
  if (report.rendering) {
    json["template"] = {{"messages", kMessages},
                        {"bytes", report.rendering->bytes},
                        {"seconds", report.rendering->seconds},
                        {"messages_per_second", kMessages / report.rendering->seconds}};
  }
  std::printf("%s\n", json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

void bench_tokenizer(const BenchTokenizerOptions& options) {
  if (options.tokenizer.empty() != options.model.given()) {
    throw UsageError("bench text needs one of --tokenizer and --model");
  }
  const Report report = measure(options);
  options.json ? print_json(report) : print_table(report);
}

}  // namespace

void add_bench_tokenizer(Command& bench) {
  auto options = std::make_shared<BenchTokenizerOptions>();
  Command command = bench.subcommand("text", "Speed of the tokenizer and of the chat template");
  command.footer(
      "Times loading, encoding and decoding on one thread, then texts of 1 MiB that are hard to encode, and\n"
      "the rendering of a conversation of 2000 messages if the folder has a chat template. All times are\n"
      "processor time, the best of the rounds; worst cases run once. Encoding a text again finds its words\n"
      "remembered, as in a server; --rounds 1 shows the first time. Without --file two texts of 2 MB are\n"
      "made up from the seed: they repeat their words more than real ones do.\n"
      "\n"
      "  $ sluice bench text --model MODEL\n"
      "  $ sluice bench text --tokenizer MODEL/tokenizer.json --file src/main.c --file README.md --json");
  command.option("--tokenizer", options->tokenizer, "A tokenizer.json, or the model that holds it")
      .type("FILE|DIR|ORG/NAME");
  options->model.add_to(command, "tokenizer.json");
  command.option("--file", options->files, "A text to encode; may be repeated; - is standard input")
      .type("FILE");
  command.option("--rounds", options->rounds, "Run everything but the worst cases so often")
      .range(1, 1000)
      .show_default();
  command.option("--seed", options->seed, "Of the texts that are made up").at_least(0).show_default();
  command.flag("--json", options->json, "Print JSON");
  command.action([options] { bench_tokenizer(*options); });
}

}  // namespace sluice::apps
