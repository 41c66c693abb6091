// `sluice bench`: measurements of the engine's parts.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/arguments.h"
#include "apps/bench_text.h"
#include "apps/commands.h"
#include "apps/loaded_model.h"
#include "base/error.h"
#include "engine/session.h"

namespace sluice::apps {
namespace {

constexpr const char* kName = "bench experts";

struct BenchExpertsOptions {
  ModelOptions model;
  BenchText text;
  bool json = false;
};

/// What one way of running the text gave.
struct Outcome {
  std::string lookahead;
  ExpertReport report;
  int64_t tokens = 0;
};

Outcome run_text(const BenchExpertsOptions& options, const LoadedModel& loaded, std::span<const int32_t> ids,
                 const std::string& lookahead) {
  ExpertOptions experts = options.model.experts;
  experts.lookahead = lookahead;
  // Counts that depend on how fast this machine is would compare nothing.
  if (experts.budget == "auto") experts.budget = std::to_string(LookaheadBudget::kFirstGuess);
  Runtime runtime(*loaded.device, *loaded.model, experts.resolve(loaded.model->info()));
  if (runtime.resident() == nullptr) refuse_without_slots(kName);  // a model without experts
  Session session(runtime, {options.model.context_tokens, options.model.chunk_tokens});
  // Every token goes through the decode path, as if the model had written the text itself.
  session.run_all(ids, 0, [](int64_t, std::span<const float>, int64_t) {});
  return {lookahead, runtime.resident()->report(), std::ssize(ids)};
}

struct Sums {
  double routed = 0, hits = 0, misses = 0, predicted = 0, predicted_used = 0;
  explicit Sums(const ExpertReport& report) {
    for (const ExpertLayerReport& layer : report.layers) {
      routed += static_cast<double>(layer.routed);
      hits += static_cast<double>(layer.hits);
      misses += static_cast<double>(layer.misses);
      predicted += static_cast<double>(layer.predicted);
      predicted_used += static_cast<double>(layer.predicted_used);
    }
  }
};

/// Recall at 4, 6 and 8; of a layer that no forecast was compared with (the first one has none), null or "-".
constexpr int kRanks[] = {4, 6, 8};

nlohmann::ordered_json recall_json(const ForecastCounters& forecast, int n) {
  return forecast.wanted == 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(forecast.recall(n));
}

void print_recall(size_t layer, const ForecastCounters& forecast) {
  std::printf("%5zu", layer);
  for (const int n : kRanks) {
    forecast.wanted == 0 ? std::printf(" %7s", "-") : std::printf(" %7.3f", forecast.recall(n));
  }
  std::printf("\n");
}

void print_table(const std::vector<Outcome>& outcomes) {
  std::printf("lookahead   hit rate   misses/token   predicted/token   of them used\n");
  for (const Outcome& outcome : outcomes) {
    const Sums s(outcome.report);
    const auto tokens = static_cast<double>(outcome.tokens);
    std::printf("%-10s %8.1f %% %14.2f %17.2f %12.1f %%\n", outcome.lookahead.c_str(),
                100 * s.hits / s.routed, s.misses / tokens, s.predicted / tokens,
                s.predicted > 0 ? 100 * s.predicted_used / s.predicted : 0);
  }
  std::printf(
      "\nrecall of the forecast (share of a layer's experts among the first n)\nlayer     n=4     n=6     "
      "n=8\n");
  const auto& layers = outcomes.back().report.layers;
  for (size_t l = 1; l < layers.size(); ++l) {
    print_recall(l, layers[l].forecast);
  }
}

void print_json(const std::vector<Outcome>& outcomes) {
  auto out = nlohmann::ordered_json::array();
  for (const Outcome& outcome : outcomes) {
    const Sums s(outcome.report);
    const auto tokens = static_cast<double>(outcome.tokens);
    auto layers = nlohmann::ordered_json::array();
    for (const ExpertLayerReport& layer : outcome.report.layers) {
      layers.push_back({{"hits", layer.hits}, {"misses", layer.misses}});
      for (const int n : kRanks) {
        layers.back()["recall_" + std::to_string(n)] = recall_json(layer.forecast, n);
      }
    }
    out.push_back({{"lookahead", outcome.lookahead},
                   {"tokens", outcome.tokens},
                   {"slots", outcome.report.slots},
                   {"hit_rate", s.hits / s.routed},
                   {"misses_per_token", s.misses / tokens},
                   {"predicted_per_token", s.predicted / tokens},
                   {"predicted_used_per_token", s.predicted_used / tokens},
                   {"layers", layers}});
  }
  std::printf("%s\n", out.dump(2).c_str());
}

void bench_experts(const BenchExpertsOptions& options) {
  if (options.model.experts.slots == "auto") refuse_without_slots(kName);
  std::vector<int32_t> ids = options.text.read(options.model, 1);
  const LoadedModel loaded = LoadedModel::load(options.model);
  ids.resize(std::min(ids.size(), static_cast<size_t>(loaded.model->info().max_positions)));
  std::vector<Outcome> outcomes;
  for (const char* lookahead : {"off", "on", "measure"})
    outcomes.push_back(run_text(options, loaded, ids, lookahead));
  options.json ? print_json(outcomes) : print_table(outcomes);
}

void add_bench_experts(Command& bench) {
  auto options = std::make_shared<BenchExpertsOptions>();
  Command command = bench.subcommand("experts", "Hit rate, misses and the forecast's recall on a text");
  command.footer(
      "Runs the text through the decode path three times (lookahead off, on, measured only) with the same "
      "slots.\n"
      "--json gives counts a token; recall is null where no forecast was compared.\n"
      "\n"
      "  $ sluice bench experts --model models/demo --expert-slots 128 --text README.md");
  options->model.without = kNotForBenches;
  options->model.without.push_back("--lookahead");  // the bench sets it
  options->model.add_to(command, true);
  options->text.add_to(command, 2000);
  command.flag("--json", options->json, "Print JSON");
  command.action([options] { bench_experts(*options); });
}

}  // namespace

void add_bench(Command& program) {
  Command bench = program.subcommand("bench", "Measure parts of the engine");
  bench.require_subcommand();
  add_bench_experts(bench);
  add_bench_cpu(bench);
  add_bench_decode(bench);
  add_bench_kernels(bench);
  add_bench_link(bench);
  add_bench_prefill(bench);
  add_bench_slots(bench);
  add_bench_tokenizer(bench);
}

}  // namespace sluice::apps
