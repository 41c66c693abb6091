// `sluice plan`: what a model needs, and a forecast for a card that is not there.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/arguments.h"
#include "apps/commands.h"
#include "apps/loaded_model.h"
#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "device/timed/timed_device.h"
#include "engine/session.h"

namespace sluice::apps {
namespace {

struct PlanOptions {
  ModelOptions model;
  std::vector<std::string> machines;
  int64_t prompt_tokens = 512, decode_tokens = 64;
  std::string trace_file;
  bool json = false;
};

/// A forecast of one machine.
struct Forecast {
  MachineModel machine;
  double ttft_ms = 0, tokens_per_s = 0, prefill_link_share = 0, decode_link_share = 0;
  uint64_t device_bytes = 0;
};

/// Ids spread over the vocabulary: what matters is that routes differ from token to token.
std::vector<int32_t> spread_ids(int64_t n, int64_t vocab_size) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < n; ++i) ids.push_back(static_cast<int32_t>((i * 7919 + 13) % vocab_size));
  return ids;
}

Forecast simulate(const PlanOptions& options, const std::string& name) {
  Forecast forecast;
  forecast.machine = machine_model(name);
  TimedOptions timed;
  timed.machine = forecast.machine;
  timed.keep_timeline = !options.trace_file.empty();
  auto device = make_timed_device(timed);
  TimedDevice& clock = *device;
  LoadedModel loaded = LoadedModel::load(options.model, std::move(device));
  Session session(*loaded.runtime, {options.model.context_tokens, options.model.chunk_tokens});
  const std::vector<int32_t> prompt = spread_ids(options.prompt_tokens, session.info().vocab_size);

  const TimedReport start = clock.report();
  std::span<const float> logits = session.prefill(prompt);
  const TimedReport first = clock.report();
  for (int64_t i = 0; i < options.decode_tokens; ++i) {
    logits =
        session.decode(static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
  }
  const TimedReport end = clock.report();
  forecast.ttft_ms = (first.now_us - start.now_us) / 1000;
  forecast.prefill_link_share =
      (first.link_to_device_busy_us - start.link_to_device_busy_us) / (first.now_us - start.now_us);
  const double decode_us = end.now_us - first.now_us;
  forecast.tokens_per_s = static_cast<double>(options.decode_tokens) * 1e6 / decode_us;
  forecast.decode_link_share = (end.link_to_device_busy_us - first.link_to_device_busy_us) / decode_us;
  forecast.device_bytes = loaded.device->allocated_bytes() - loaded.model->info().expert_bytes;
  if (!options.trace_file.empty()) write_chrome_trace(clock.timeline(), options.trace_file);
  return forecast;
}

void print_lines(const PlanOptions& options) {
  const LoadedModel loaded = LoadedModel::load(options.model);
  const ModelInfo& info = loaded.model->info();
  const ExpertSettings settings = options.model.experts.resolve(info);
  const int64_t context =
      options.model.context_tokens > 0 ? options.model.context_tokens : info.max_positions;
  const uint64_t experts =
      static_cast<uint64_t>(info.moe_layers.size()) * static_cast<uint64_t>(info.experts);
  const uint64_t slots = settings.slots * (experts > 0 ? info.expert_bytes / experts : 0);
  const auto line = [](const char* name, uint64_t bytes, const std::string& note) {
    std::printf("%-16s %12s   %s\n", name, format_bytes(bytes).c_str(), note.c_str());
  };
  line("dense weights", info.dense_bytes, "device");
  line("expert slots", slots,
       "device; " + std::to_string(settings.slots) + " of " + std::to_string(experts) + " experts");
  line("KV cache", static_cast<uint64_t>(info.kv.bytes_per_token() * context),
       "device; " + std::to_string(context) + " tokens in f32");
  if (settings.slots > 0 &&
      (settings.prefill == PrefillMode::kAuto || settings.prefill == PrefillMode::kLayerMajor)) {
    const BatchUse use =
        loaded.runtime->resident()->splits_layers() ? BatchUse::kGroupInTiles : BatchUse::kGroup;
    const int64_t tokens = std::min(context, most_group_tokens(info, settings, use));
    line("prefill group", static_cast<uint64_t>(tokens) * group_bytes_per_token(info, use),
         "device; " + std::to_string(tokens) + " tokens that pass each layer together");
  }
  line("expert rows", info.expert_bytes, "host, page-locked where a GPU reads them");
}

void run_plan(const PlanOptions& options) {
  for (const std::string& name : options.machines) machine_model(name);  // an unknown one is refused at once
  print_lines(options);
  if (options.machines.empty()) return;
  std::printf(
      "\nforecast for a prompt of %lld tokens and %lld more, by simulation (rates of the cards: see docs)\n",
      static_cast<long long>(options.prompt_tokens), static_cast<long long>(options.decode_tokens));
  std::printf("card             first token   link busy      decode   link busy\n");
  for (const std::string& name : options.machines) {
    const Forecast f = simulate(options, name);
    std::printf("%-14s %9.2f ms %9.1f %% %8.1f /s %9.1f %%\n", name.c_str(), f.ttft_ms,
                100 * f.prefill_link_share, f.tokens_per_s, 100 * f.decode_link_share);
  }
}

}  // namespace

void add_plan(Command& program) {
  auto options = std::make_shared<PlanOptions>();
  Command command =
      program.subcommand("plan", "What a model needs in memory, and a forecast for cards that are not there");
  command.footer(
      "The forecast runs the model's own streams, copies and events on a simulated clock: each operation "
      "costs what its\n"
      "declared bytes and arithmetic cost on the named card. Cards: " +
      [] {
        std::string names;
        for (const MachineModel& machine : machine_models())
          names += (names.empty() ? "" : ", ") + machine.name;
        return names;
      }() +
      ".\n\n  $ sluice plan --model models/demo --expert-slots 25% --simulate rtx5070ti");
  options->model.add_to(command, true);
  command.option("--simulate", options->machines, "Cards to forecast for").separated_by(',').type("NAME,...");
  command.option("--prompt-tokens", options->prompt_tokens, "Length of the prompt")
      .at_least(1)
      .show_default();
  command.option("--tokens", options->decode_tokens, "Length of the answer").at_least(1).show_default();
  command.option("--timeline", options->trace_file, "Write the last card's steps as a Chrome trace")
      .type("FILE");
  command.action([options] { run_plan(*options); });
}

}  // namespace sluice::apps
