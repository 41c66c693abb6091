// `sluice bench decode` and `sluice bench prefill`: a model of random weights with generated routes, against
// the link's ceiling in the same run.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "apps/arguments.h"
#include "apps/commands.h"
#include "apps/synth_model.h"
#include "apps/usage_error.h"
#include "base/error.h"
#include "base/median.h"
#include "engine/session.h"

namespace sluice::apps {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostPromptTokens = 1 << 17;

struct BenchOptions {
  SynthModelOptions model;
  std::vector<std::string> prompts = {"64", "125", "512", "1024"};
  int64_t prompt_tokens = 64, warm_tokens = 128, tokens = 128, rounds = 3;
  bool json = false, op_times = false;
};

/// Where the time of `tokens` tokens (or of one prompt) went, one operation at a time.
void print_op_times(Device& device, double tokens, const char* what = "token") {
  const std::vector<OpTime> times = device.take_op_times();
  double all = 0, count = 0;
  for (const OpTime& time : times) {
    all += time.us;
    count += static_cast<double>(time.count);
  }
  std::printf("\noperation                %8s   us each  us/%-6s   share\n",
              (std::string("a ") + what).c_str(), what);
  for (const OpTime& time : times) {
    const auto n = static_cast<double>(time.count);
    std::printf("%-24s %8.1f %9.2f %10.1f %6.1f %%\n", time.name.c_str(), n / tokens, time.us / n,
                time.us / tokens, 100 * time.us / all);
  }
  std::printf("%-24s %8.1f %9s %10.1f\n", "all", count / tokens, "", all / tokens);
}

/// Bytes a second of one plain copy of page-locked memory.
double link_rate(Device& device) {
  constexpr size_t kBytes = size_t{256} << 20;
  const std::unique_ptr<Stream> stream = device.make_stream("link", Priority::kHighest);
  const Buffer source = device.allocate(kBytes, "bench source", MemoryKind::kPinned);
  const Buffer target = device.allocate(kBytes, "bench target");
  std::memset(source.data(), 1, kBytes);
  std::vector<double> rates;
  for (int i = 0; i < 5; ++i) {
    const double start = device.now_us();
    stream->copy("plain", target.data(), source.data(), kBytes);
    device.wait(*stream, "bench");
    rates.push_back(static_cast<double>(kBytes) * 1e6 / (device.now_us() - start));
  }
  return median(rates);
}

std::vector<int32_t> some_ids(int64_t n, int64_t vocab_size, int32_t salt) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < n; ++i) {
    ids.push_back(static_cast<int32_t>((i * 7919 + int64_t{salt} * 104729) % vocab_size));
  }
  return ids;
}

struct Sums {
  double routed = 0, hits = 0, misses = 0, used = 0;
};
Sums sums_of(const ExpertReport& report) {
  Sums s;
  for (const ExpertLayerReport& layer : report.layers) {
    s.routed += static_cast<double>(layer.routed);
    s.hits += static_cast<double>(layer.hits);
    s.misses += static_cast<double>(layer.misses);
    s.used += static_cast<double>(layer.predicted_used);
  }
  return s;
}

/// Decode steps of one way, after a prompt and steps that fill the slots.
struct DecodeRun {
  double ms = 0;                                                                               // a token
  double hit_rate = 0, misses = 0, predicted_used = 0, demand_bytes = 0, predicted_bytes = 0;  // a token
};

DecodeRun run_decode(const BenchOptions& options, const SynthModel& made, const ExpertSettings& settings,
                     int32_t salt, bool time_ops = false) {
  made.device->time_ops(time_ops);  // before the first step, so that none is recorded as a graph
  Runtime runtime(*made.device, *made.model, settings);
  const int64_t all = options.prompt_tokens + options.warm_tokens + options.tokens;
  Session session(runtime, {all, options.model.chunk_tokens});
  made.set_topic(salt);
  const std::vector<int32_t> ids = some_ids(all, session.info().vocab_size, salt);
  const auto prompt = static_cast<size_t>(options.prompt_tokens);
  session.prefill(std::span(ids).first(prompt));
  size_t at = prompt;
  for (int64_t i = 0; i < options.warm_tokens; ++i) session.decode(ids[at++]);
  const ExpertReport before = runtime.resident()->report();
  made.device->take_op_times();
  std::vector<double> times;
  for (int64_t i = 0; i < options.tokens; ++i) {
    const double start = made.device->now_us();
    session.decode(ids[at++]);
    times.push_back((made.device->now_us() - start) / 1000);
  }
  made.device->time_ops(false);
  const ExpertReport after = runtime.resident()->report();
  const Sums a = sums_of(before), b = sums_of(after);
  const auto tokens = static_cast<double>(options.tokens);
  return {median(times),
          (b.hits - a.hits) / (b.routed - a.routed),
          (b.misses - a.misses) / tokens,
          (b.used - a.used) / tokens,
          static_cast<double>(after.demand_bytes - before.demand_bytes) / tokens,
          static_cast<double>(after.predicted_bytes - before.predicted_bytes) / tokens};
}

void print_decode(const Json& out) {
  const double link = out["link_gbps"].get<double>() * 1e9;
  std::printf("routes: generated; %lld slots, link %.2f GB/s\n",
              static_cast<long long>(out["slots"].get<int64_t>()), link / 1e9);
  std::printf(
      "lookahead   ms/token   tokens/s   hit rate   misses/token   predicted, used   MB/token   link time\n");
  for (const Json& way : out["ways"]) {
    const auto number = [&](const char* name) { return way[name].get<double>(); };
    const double ms = number("ms_per_token");
    const double bytes = number("demand_bytes_per_token") + number("predicted_bytes_per_token");
    std::printf("%-9s %10.3f %10.1f %8.1f %% %14.1f %17.1f %10.1f %8.1f %%\n",
                way["lookahead"].get<std::string>().c_str(), ms, 1000 / ms, 100 * number("hit_rate"),
                number("misses_per_token"), number("predicted_used_per_token"), bytes / 1e6,
                100 * (bytes / link * 1000) / ms);
  }
}

void bench_decode(const BenchOptions& options) {
  const SynthModel made = SynthModel::load(options.model);
  const double link = link_rate(*made.device);
  const int64_t context = options.prompt_tokens + options.warm_tokens + options.tokens;
  const std::vector<std::string> ways = {"off", "on"};
  std::vector<std::vector<DecodeRun>> runs(ways.size());
  int64_t slots = 0;
  for (int64_t round = 0; round < options.rounds; ++round) {
    for (size_t w = 0; w < ways.size(); ++w) {
      ExpertOptions experts = options.model.experts;
      experts.lookahead = ways[w];
      const ExpertSettings settings = made.settings(experts, context);
      slots = settings.slots;
      runs[w].push_back(run_decode(options, made, settings, static_cast<int32_t>(round)));
    }
  }
  Json out = {{"routes", "generated"}, {"slots", slots}, {"link_gbps", link / 1e9}, {"ways", Json::array()}};
  for (size_t w = 0; w < ways.size(); ++w) {
    const auto pick = [&](double DecodeRun::*field) {
      std::vector<double> values;
      for (const DecodeRun& run : runs[w]) values.push_back(run.*field);
      return median(values);
    };
    out["ways"].push_back({{"lookahead", ways[w]},
                           {"ms_per_token", pick(&DecodeRun::ms)},
                           {"hit_rate", pick(&DecodeRun::hit_rate)},
                           {"misses_per_token", pick(&DecodeRun::misses)},
                           {"predicted_used_per_token", pick(&DecodeRun::predicted_used)},
                           {"demand_bytes_per_token", pick(&DecodeRun::demand_bytes)},
                           {"predicted_bytes_per_token", pick(&DecodeRun::predicted_bytes)}});
  }
  if (options.json) {
    std::printf("%s\n", out.dump(2).c_str());
  } else {
    print_decode(out);
  }
  if (options.op_times) {
    BenchOptions timed = options;
    timed.tokens = std::min<int64_t>(options.tokens, 16);
    run_decode(timed, made, made.settings(options.model.experts, context), 0, true);
    print_op_times(*made.device, static_cast<double>(timed.tokens));
  }
}

/// One cold prompt on warm slots.
struct PrefillRun {
  double ms = 0, needed_bytes = 0, moved_bytes = 0, distinct = 0;
  std::string way;
};

std::set<int64_t> ids_of(const std::vector<Resident>& residents, int64_t experts) {
  std::set<int64_t> ids;
  for (const Resident& r : residents) ids.insert(r.layer * experts + r.expert);
  return ids;
}

uint64_t moved(const ExpertReport& report) {
  return report.demand_bytes + report.streamed_bytes + report.touched_bytes + report.predicted_bytes;
}

PrefillRun run_prefill(const SynthModel& made, Runtime& runtime, int64_t tokens, int64_t chunk,
                       int32_t salt) {
  const ModelInfo& info = made.model->info();
  made.set_topic(salt);
  const std::vector<int32_t> ids = some_ids(tokens, info.vocab_size, salt);
  Session session(runtime, {tokens, chunk});
  const std::set<int64_t> before = ids_of(runtime.resident()->residency(), info.experts);
  const uint64_t bytes = moved(runtime.resident()->report());
  const double start = made.device->now_us();
  session.prefill(ids);
  PrefillRun run;
  run.ms = (made.device->now_us() - start) / 1000;
  const ExpertReport report = runtime.resident()->report();
  run.moved_bytes = static_cast<double>(moved(report) - bytes);
  run.way = report.passes.empty() ? "" : std::string(name_of(report.passes.back().way));
  // Once more, to see the routes: they depend on ids, positions and topic alone.
  Session again(runtime, {tokens, chunk});
  std::set<int64_t> routed;
  int64_t moe_layer = 0;
  again.observe_routes([&](int64_t layer, std::span<const int32_t> experts, int64_t) {
    moe_layer = std::find(info.moe_layers.begin(), info.moe_layers.end(), layer) - info.moe_layers.begin();
    for (const int32_t e : experts) routed.insert(moe_layer * info.experts + e);
  });
  again.prefill(ids);
  const auto row = static_cast<double>(made.model->expert_rows()[0].layout.row_bytes);
  for (const int64_t id : routed) run.needed_bytes += before.contains(id) ? 0 : row;
  run.distinct =
      static_cast<double>(routed.size()) / static_cast<double>(info.experts * std::ssize(info.moe_layers));
  return run;
}

void print_prefill(const Json& out) {
  const double link = out["link_gbps"].get<double>() * 1e9;
  std::printf("routes: generated; %lld slots, link %.2f GB/s\n",
              static_cast<long long>(out["slots"].get<int64_t>()), link / 1e9);
  std::printf("tokens   TTFT ms   way           touched   needed MB   moved MB   TTFT / (needed / link)\n");
  for (const Json& prompt : out["prompts"]) {
    const auto number = [&](const char* name) { return prompt[name].get<double>(); };
    const double floor_ms = number("needed_bytes") / link * 1000;
    std::printf("%6lld %9.2f   %-11s %8.1f %% %11.1f %10.1f %10.2f\n",
                static_cast<long long>(prompt["tokens"].get<int64_t>()), number("ttft_ms"),
                prompt["way"].get<std::string>().c_str(), 100 * number("distinct_experts"),
                number("needed_bytes") / 1e6, number("moved_bytes") / 1e6,
                floor_ms > 0 ? number("ttft_ms") / floor_ms : 0);
  }
}

void bench_prefill(const BenchOptions& options) {
  const std::vector<int64_t> lengths = parse_numbers("--prompts", options.prompts, 1, kMostPromptTokens);
  const SynthModel made = SynthModel::load(options.model);
  const double link = link_rate(*made.device);
  const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  Runtime runtime(*made.device, *made.model, made.settings(options.model.experts, longest));
  int32_t salt = 0;
  for (const int64_t n : lengths) run_prefill(made, runtime, n, options.model.chunk_tokens, ++salt);  // warm
  Json out = {{"routes", "generated"},
              {"slots", runtime.resident()->slots()},
              {"link_gbps", link / 1e9},
              {"prompts", Json::array()}};
  for (const int64_t n : lengths) {
    std::vector<PrefillRun> runs;
    for (int64_t r = 0; r < options.rounds; ++r) {
      runs.push_back(run_prefill(made, runtime, n, options.model.chunk_tokens, ++salt));
    }
    std::sort(runs.begin(), runs.end(), [](const PrefillRun& a, const PrefillRun& b) { return a.ms < b.ms; });
    const PrefillRun& run = runs[runs.size() / 2];
    out["prompts"].push_back({{"tokens", n},
                              {"ttft_ms", run.ms},
                              {"fastest_ms", runs.front().ms},
                              {"slowest_ms", runs.back().ms},
                              {"way", run.way},
                              {"distinct_experts", run.distinct},
                              {"needed_bytes", run.needed_bytes},
                              {"moved_bytes", run.moved_bytes}});
  }
  if (options.json) {
    std::printf("%s\n", out.dump(2).c_str());
  } else {
    print_prefill(out);
  }
  for (const int64_t n : options.op_times ? lengths : std::vector<int64_t>()) {
    made.set_topic(++salt);
    const std::vector<int32_t> ids = some_ids(n, made.model->info().vocab_size, salt);
    Session session(runtime, {n, options.model.chunk_tokens});
    made.device->time_ops(true);
    session.prefill(ids);
    made.device->time_ops(false);
    std::printf("\na prompt of %lld tokens:", static_cast<long long>(n));
    print_op_times(*made.device, 1, "prompt");
  }
}

}  // namespace

void add_bench_decode(Command& bench) {
  auto options = std::make_shared<BenchOptions>();
  Command command =
      bench.subcommand("decode", "Time a token of a model of random weights, lookahead off and on");
  command.footer(
      "Weights are random and routes are generated: their statistics follow published measurements.\n"
      "\n"
      "  $ sluice bench decode --synth q36 --layers 4 --expert-slots 25%");
  options->model.add_to(command);
  command.remove({"--lookahead"});
  command.option("--prompt-tokens", options->prompt_tokens, "Tokens of the prompt")
      .range(1, 1 << 17)
      .show_default();
  command.option("--warm-tokens", options->warm_tokens, "Steps before the measured ones")
      .range(0, 1 << 17)
      .show_default();
  command.option("--tokens", options->tokens, "Measured steps").range(1, 1 << 17).show_default();
  command.option("--rounds", options->rounds, "Rounds; ways take turns in each")
      .range(1, 1000)
      .show_default();
  command.flag("--json", options->json, "Print JSON");
  command.flag(
      "--op-times", options->op_times,
      "Print what each operation takes, timed one by one and without graphs, with the default lookahead");
  command.action([options] { bench_decode(*options); });
}

void add_bench_prefill(Command& bench) {
  auto options = std::make_shared<BenchOptions>();
  Command command = bench.subcommand("prefill", "Time to the first token of cold prompts on warm slots");
  command.footer(
      "Weights are random and routes are generated. Needed are the experts that a prompt routes to and that "
      "lay in "
      "no\nslot when it came.\n"
      "\n"
      "  $ sluice bench prefill --synth q36 --layers 4 --expert-slots 25% --prompts 16,64");
  options->model.add_to(command);
  command.option("--prompts", options->prompts, "Lengths of the prompts").separated_by(',').show_default();
  command.option("--rounds", options->rounds, "Prompts of each length").range(1, 1000).show_default();
  command.flag("--json", options->json, "Print JSON");
  command.flag("--op-times", options->op_times,
               "Print what each operation takes in a prompt of each length, timed one by one");
  command.action([options] { bench_prefill(*options); });
}

}  // namespace sluice::apps
