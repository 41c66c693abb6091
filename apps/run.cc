// `sluice run`: one prompt, one answer.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/arguments.h"
#include "apps/commands.h"
#include "apps/expert_usage.h"
#include "apps/input_limits.h"
#include "apps/interrupt.h"
#include "apps/loaded_model.h"
#include "apps/sampling_options.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/file.h"
#include "text/chat_template.h"
#include "text/chat_template_inputs.h"
#include "text/tokenizer.h"

namespace sluice::apps {
namespace {

struct RunOptions {
  ModelOptions model;
  SamplingOptions sampling;
  std::optional<std::string> prompt;
  std::optional<std::string> system;
  std::string prompt_file;
  bool chat = false, json = false, experts = false, ignore_end = false, quiet = false;
  int64_t logprobs = -1;
};

std::string prompt_source(const RunOptions& options) {
  return options.prompt_file.empty() ? "-" : options.prompt_file;
}

std::string read_prompt(const RunOptions& options) {
  if (options.prompt) return *options.prompt;
  return read_input(prompt_source(options), kMostInputBytes);
}

std::string render_chat(const RunOptions& options, const std::string& prompt) {
  ChatTemplateInputs inputs;
  const std::string system = options.system.value_or("");
  if (!system.empty()) inputs.messages.push_back({{"role", "system"}, {"content", system}});
  inputs.messages.push_back({{"role", "user"}, {"content", prompt}});
  return ChatTemplate::load(options.model.place.folder()).render(inputs);
}

nlohmann::ordered_json logprobs_of(const GenerateResult& result, const Tokenizer& tokenizer) {
  auto list = nlohmann::ordered_json::array();
  const auto entry = [&](int32_t id, double logprob) {
    return nlohmann::ordered_json{{"id", id}, {"token", tokenizer.decode({&id, 1})}, {"logprob", logprob}};
  };
  for (const SampledToken& token : result.tokens) {
    auto item = entry(token.id, token.logprob);
    auto& top = item["top_logprobs"] = nlohmann::ordered_json::array();
    for (const auto& [id, logprob] : token.top_logprobs) top.push_back(entry(id, logprob));
    list.push_back(std::move(item));
  }
  return list;
}

void print_json(const RunOptions& options, const std::vector<int32_t>& prompt_ids, const std::string& text,
                const GenerateResult& result, const Tokenizer& tokenizer, double load_ms, std::FILE* stream) {
  nlohmann::ordered_json out = {{"text", text},
                                {"ids", result.ids},
                                {"prompt_ids", prompt_ids},
                                {"finish_reason", name_of(result.finish_reason)},
                                {"timings",
                                 {{"load_ms", load_ms},
                                  {"ttft_ms", result.ttft_ms},
                                  {"prefill_tps", result.prefill_tps},
                                  {"decode_tps", result.decode_tps}}}};
  if (options.logprobs >= 0) out["logprobs"] = logprobs_of(result, tokenizer);
  // A token may hold half a character: the replacement keeps the document valid.
  std::fprintf(stream, "%s\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

void print_text(std::string_view text, std::FILE* stream) {
  std::fwrite(text.data(), 1, text.size(), stream);
  if (std::fflush(stream) != 0) throw Error(ErrorCode::kIo, "cannot write to standard output");
}

void run(const RunOptions& options) {
  options.sampling.check();
  FileUses files;
  if (!options.prompt) files.reads("--prompt-file", prompt_source(options));
  options.model.check(files);
  const Tokenizer tokenizer = load_tokenizer(options.model);
  const std::string prompt = read_prompt(options);
  const std::vector<int32_t> prompt_ids =
      tokenizer.encode(options.chat ? render_chat(options, prompt) : prompt);
  LoadedModel loaded = LoadedModel::load(options.model);
  Session session(*loaded.runtime, {options.model.context_tokens, options.model.chunk_tokens});
  ExpertUsage usage(session.info());
  if (options.experts) session.observe_routes(usage.observer());

  GenerateOptions generation;
  generation.sampling = options.sampling.resolve(loaded.checkpoint.generation_config());
  generation.sampling.logprobs = options.logprobs;
  generation.sampling.vocab_limit = tokenizer.vocab_size();
  generation.max_tokens = options.sampling.max_tokens;
  if (!options.ignore_end) generation.end_ids = loaded.end_ids();

  const InterruptGuard interrupt;
  session.between_layers([&] { interrupt.check(); });  // a long prompt
  std::FILE* const stream = options.model.text_stream();
  StreamDecoder decoder(tokenizer);
  std::string text;
  const auto emit = [&](const std::string& piece) {
    text += piece;
    if (!options.json && !piece.empty()) print_text(piece, stream);
  };
  const auto write_report = [&] {
    const std::string report = loaded.report(options.model);
    if (!options.json && !options.quiet) std::fputs(report.c_str(), stderr);
  };
  GenerateResult result;
  try {
    result = generate(session, prompt_ids, generation, [&](const SampledToken& token) {
      emit(decoder.push(token.id));
      return !interrupt.raised();
    });
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCancelled) write_report();  // Ctrl-C during the prompt
    throw;
  }
  emit(decoder.finish());

  if (options.json) {
    print_json(options, prompt_ids, text, result, tokenizer, loaded.load_ms, stream);
  } else {
    print_text("\n", stream);
  }
  if (!options.json && !options.quiet) {
    std::fprintf(stderr, "\n%s in %.0f ms; %s at %.1f tokens/s; finish: %s; loaded in %.0f ms\n",
                 counted(prompt_ids.size(), "prompt token").c_str(), result.ttft_ms,
                 counted(result.ids.size(), "token").c_str(), result.decode_tps,
                 std::string(name_of(result.finish_reason)).c_str(), loaded.load_ms);
  }
  write_report();
  if (options.experts) std::fprintf(stderr, "\n%s", usage.table().c_str());
  if (result.finish_reason == FinishReason::kCancelled) interrupt.check();
}

}  // namespace

void add_run(Command& program) {
  auto options = std::make_shared<RunOptions>();
  Command command = program.subcommand("run", "Answer one prompt");
  options->model.add_to(command, true);
  const Argument prompt =
      command.option("--prompt", options->prompt, "Text to continue as it is; special tokens are recognised");
  command
      .option("--prompt-file", options->prompt_file,
              "Read the prompt from a file; - or nothing is standard input")
      .excludes(prompt);
  const Argument chat = command.flag("--chat", options->chat,
                                     "Wrap the prompt as one user turn with the model's chat template");
  command.option("--system", options->system, "System message before the user's turn").needs(chat);
  const Argument json = command.flag(
      "--json", options->json,
      "Print one JSON object: text, ids, prompt_ids, finish_reason, timings (ms and tokens a second)");
  command
      .option("--logprobs", options->logprobs,
              "With --json: log probabilities of each token and of the N likeliest")
      .at_least(0)
      .needs(json);
  command.flag("--experts", options->experts, "Show which experts were used, on standard error");
  command.flag("--ignore-end", options->ignore_end, "Do not stop at the model's end tokens");
  command.flag("--quiet", options->quiet, "No line with timings on standard error");
  options->sampling.add_to(command);
  command.footer(
      "Ctrl-C stops the answer, or the reading of a long prompt; what is there is kept, --report and "
      "--residency\nare written, and the exit code is 130.");
  command.action([options] { run(*options); });
}

}  // namespace sluice::apps
