// `sluice bench cpu`: what experts on the CPU save beside a link of a given rate.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <numeric>

#include "apps/arguments.h"
#include "apps/bench_text.h"
#include "apps/commands.h"
#include "apps/loaded_model.h"
#include "apps/usage_error.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/median.h"
#include "engine/session.h"

namespace sluice::apps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kName = "bench cpu";

struct BenchCpuOptions {
  ModelOptions model;
  BenchText text;
  int64_t rounds = 3;
  double link_gbps = 0;
  bool as_prompt = false;
};

struct Run {
  double all_ms = 0, settled_ms = 0;  // a token; settled: of the second half
  double on_cpu = 0;                  // share of the missing experts
  std::string verdict;
};

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Of the missing experts, those that the CPU computed.
double share_on_cpu(const ExpertReport& report, bool as_prompt) {
  double cpu = 0, fetched = 0;
  for (const ExpertLayerReport& layer : report.layers) {
    cpu += static_cast<double>(layer.cpu);
    fetched += static_cast<double>(layer.misses);
  }
  if (as_prompt) {
    cpu = 0;
    for (const PassRecord& pass : report.passes) cpu += static_cast<double>(pass.cpu_experts);
    fetched = static_cast<double>(report.streamed_bytes) / static_cast<double>(report.layers[0].row_bytes);
  }
  return cpu / std::max(1.0, cpu + fetched);
}

Run run_text(const BenchCpuOptions& options, const LoadedModel& loaded, std::span<const int32_t> ids,
             const std::string& mode) {
  ExpertOptions experts = options.model.experts;
  experts.cpu = mode;
  Runtime runtime(*loaded.device, *loaded.model, experts.resolve(loaded.model->info()));
  if (runtime.resident() == nullptr) refuse_without_slots(kName);  // a model without experts
  Session session(runtime, {options.model.context_tokens, options.model.chunk_tokens});
  std::vector<double> times;
  auto last = Clock::now();
  const auto decode_from = static_cast<int64_t>(options.as_prompt ? ids.size() : 0);
  session.run_all(ids, decode_from, [&](int64_t, std::span<const float>, int64_t rows) {
    const auto now = Clock::now();
    times.push_back(std::chrono::duration<double, std::milli>(now - last).count() /
                    static_cast<double>(rows));
    last = now;
  });
  const ExpertReport report = runtime.resident()->report();
  const std::span<const double> all(times);
  return {mean(all), mean(all.subspan(all.size() / 2)), share_on_cpu(report, options.as_prompt),
          options.as_prompt ? report.cpu.passes : report.cpu.verdict};
}

void print_arm(const char* mode, const std::vector<Run>& runs, double off_ms) {
  std::vector<double> all, settled, share;
  for (const Run& run : runs) {
    all.push_back(run.all_ms);
    settled.push_back(run.settled_ms);
    share.push_back(100 * run.on_cpu);
  }
  const double ms = median(settled);
  std::printf("%-8s %10.3f %16.3f %12.2f %11.1f %%   %s\n", mode, median(all), ms,
              off_ms > 0 ? off_ms / ms : 1.0, median(share), runs.back().verdict.c_str());
}

void bench_cpu(const BenchCpuOptions& options) {
  if (!options.as_prompt && options.model.experts.prefill != "auto") {
    throw UsageError("--prefill-mode has no effect without --as-prompt");
  }
  if (options.model.experts.slots == "auto") refuse_without_slots(kName);
  std::vector<int32_t> ids = options.text.read(options.model, 2);  // the first half settles
  // GB/s are bytes a nanosecond.
  const LoadedModel loaded =
      LoadedModel::load(options.model, make_host_device(options.model.threads, options.link_gbps * 1e6));
  ids.resize(std::min(ids.size(), static_cast<size_t>(loaded.model->info().max_positions)));
  const std::vector<const char*> modes = {"off", "auto", "always"};
  std::vector<std::vector<Run>> runs(modes.size());
  for (int64_t round = 0; round < options.rounds; ++round) {
    for (size_t m = 0; m < modes.size(); ++m) runs[m].push_back(run_text(options, loaded, ids, modes[m]));
  }
  std::printf(
      "%s, %s, link %s\n", counted(ids.size(), "token").c_str(), counted(options.rounds, "round").c_str(),
      options.link_gbps > 0 ? (std::to_string(options.link_gbps) + " GB/s").c_str() : "not slowed down");
  std::printf("CPU        ms/token   settled ms/tok   times off   of misses   verdict of auto\n");
  std::vector<double> off;
  for (const Run& run : runs[0]) off.push_back(run.settled_ms);
  for (size_t m = 0; m < modes.size(); ++m) print_arm(modes[m], runs[m], median(off));
}

}  // namespace

void add_bench_cpu(Command& bench) {
  auto options = std::make_shared<BenchCpuOptions>();
  Command command = bench.subcommand("cpu", "Time a token with experts on the CPU off, auto and always");
  command.footer(
      "Runs the text token by token, in each round once for each of off, auto and always, and prints\n"
      "medians over the rounds; \"settled\" is the second half of the text. With --as-prompt the text goes\n"
      "in as a prompt, in chunks (--chunk, --prefill-mode). On this backend copies and products take turns;\n"
      "only the CPU's experts run beside the link.\n"
      "\n"
      "  $ sluice bench cpu --model models/demo --expert-slots 64 --link-gbps 0.1 --text README.md");
  options->model.without = kNotForBenches;
  options->model.without.insert(options->model.without.end(), {"--device", "--gpu-memory"});
  std::erase(options->model.without, "--prefill-mode");
  options->model.without.push_back("--cpu-experts");  // the bench sets it
  options->model.add_to(command, true);
  options->text.add_to(command, 600);
  command.option("--rounds", options->rounds, "Run each setting so often").at_least(1).show_default();
  command
      .option("--link-gbps", options->link_gbps,
              "Rate of the link in GB/s that copies from host memory keep to; 0: as fast as memory")
      .at_least(0)
      .show_default();
  command.flag("--as-prompt", options->as_prompt, "Run the text as a prompt, not token by token");
  command.action([options] { bench_cpu(*options); });
}

}  // namespace sluice::apps
