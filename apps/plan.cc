// `sluice plan`: what a model needs, and a forecast for cards that are not there.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>

#include "apps/arguments.h"
#include "apps/commands.h"
#include "apps/device_options.h"
#include "apps/file_uses.h"
#include "apps/loaded_model.h"
#include "apps/messages.h"
#include "apps/plan_output.h"
#include "apps/usage_error.h"
#include "base/error.h"
#include "models/shape_model.h"

namespace sluice::apps {
namespace {

constexpr int64_t kShapeContext = 20000;  // of a shape, where --context says nothing
constexpr int64_t kWarmTokens = 48;
// A context with its modules takes about half of it; a screen, or the page tables of 200 GB of host rows, the
// other half.
constexpr uint64_t kReserveBytes = 1'000'000'000;

struct PlanOptions {
  ModelOptions model;
  std::string shape;
  std::vector<std::string> machines;
  std::string gpu_memory;
  SimulatedRequest request;
  std::string trace_file;
  double compute_share = 1;
  bool json = false;

  int64_t context(const ModelInfo& info) const {
    if (model.context_tokens > 0) return std::min(model.context_tokens, info.max_positions);
    if (shape.empty()) return info.max_positions;
    const int64_t wish = std::max({kShapeContext, request.prompt_tokens, request.decode_tokens});
    return std::min(info.max_positions, std::max(wish, request.prompt_tokens + request.decode_tokens));
  }
};

/// The model of --model, or one of --shape's sizes without weights.
std::unique_ptr<Model> load(const PlanOptions& options, Device& device) {
  if (!options.shape.empty()) {
    return make_shape_model(device, model_shape(options.shape), load_options(options.model));
  }
  return load_model(Checkpoint::open(options.model.place.folder()), device, load_options(options.model));
}

/// A simulated machine with the model in it.
struct Machine {
  Machine(const PlanOptions& options, const std::string& name)
      : model_of(with_share(machine_model(name), options.compute_share)),
        clock(make_timed_device(timed_options(options, model_of))),
        model(load(options, *clock)) {}

  static MachineModel with_share(MachineModel machine, double share) {
    machine.share = share;
    return machine;
  }
  static TimedOptions timed_options(const PlanOptions& options, const MachineModel& machine) {
    TimedOptions timed;
    timed.machine = machine;
    timed.keep_timeline = !options.trace_file.empty();
    if (!options.shape.empty()) timed.runs = runs_for_shape;
    return timed;
  }

  const MachineModel model_of;
  std::unique_ptr<TimedDevice> clock;
  std::unique_ptr<Model> model;
};

SimulatedRun run_on(const PlanOptions& options, const Machine& machine, const ExpertSettings& settings,
                    const SimulatedRequest& request) {
  Runtime runtime(*machine.clock, *machine.model, settings);
  const SessionOptions session{options.context(machine.model->info()), options.model.chunk_tokens};
  return simulate(runtime, *machine.clock, session, request);
}

void check_request(const PlanOptions& options, int64_t context) {
  const SimulatedRequest& request = options.request;
  if (options.machines.empty() ||
      (request.prompt_tokens <= context && request.decode_tokens <= context - request.prompt_tokens)) {
    return;
  }
  throw Error(ErrorCode::kInvalidArgument, "--prompt-tokens " + std::to_string(request.prompt_tokens) +
                                               " and --tokens " + std::to_string(request.decode_tokens) +
                                               " do not fit the context of " + std::to_string(context) +
                                               " tokens");
}

MemoryLine slots_line(const ModelInfo& info, const ExpertSettings& settings, bool takes_the_rest) {
  const ExpertShape shape = expert_shape(info);
  const int64_t experts = shape.layers * shape.experts;
  MemoryLine line{.name = "expert slots", .option = "--expert-slots"};
  if (experts == 0) return line;
  line.unit_bytes = info.expert_bytes / static_cast<uint64_t>(experts);
  line.least = min_slots(shape);
  line.most = experts;
  line.takes_the_rest = takes_the_rest;
  line.bytes = static_cast<uint64_t>(line.takes_the_rest ? line.least : settings.slots) * line.unit_bytes;
  line.note = line.takes_the_rest
                  ? "what the card has room for of " + std::to_string(experts) + " experts"
                  : std::to_string(settings.slots) + " of " + std::to_string(experts) + " experts";
  return line;
}

MemoryLine context_line(const PlanOptions& options, const ModelInfo& info, int64_t context) {
  const auto bytes = static_cast<uint64_t>(info.kv.bytes_per_token());
  return {.name = "KV cache",
          .note = std::to_string(context) + " tokens in " + std::string(name_of(info.kv.format)),
          .bytes = bytes * static_cast<uint64_t>(context),
          .option = "--context",
          .unit_bytes = bytes,
          .least = std::min(context, options.request.prompt_tokens + options.request.decode_tokens)};
}

/// Whatever was allocated and has no line of its own; a shape's expert rows are allocated, a model's mapped.
MemoryLine scratch_line(const PlanOptions& options, const Device& device, const Model& model, int64_t slots) {
  const ModelInfo& info = model.info();
  const auto memory = model.make_batch_memory(BatchUse::kAlone, model.max_rows());
  const ExpertShape shape = expert_shape(info);
  const auto experts = static_cast<uint64_t>(shape.layers * shape.experts);
  const uint64_t slot_bytes = experts == 0 ? 0 : static_cast<uint64_t>(slots) * (info.expert_bytes / experts);
  const uint64_t lines = info.dense_bytes + slot_bytes + (options.shape.empty() ? 0 : info.expert_bytes);
  const uint64_t allocated = device.allocated_bytes();
  return {.name = "scratch",
          .note = "a chunk of " + std::to_string(model.max_rows()) + " tokens, slot maps and their tables",
          .bytes = allocated - std::min<uint64_t>(allocated, lines)};
}

MemoryLine group_line(const Runtime& runtime, const ExpertSettings& settings, int64_t context) {
  const ModelInfo& info = runtime.model().info();
  const BatchUse use = runtime.resident()->splits_layers() ? BatchUse::kGroupInTiles : BatchUse::kGroup;
  const int64_t tokens = std::min(context, most_group_tokens(info, settings, use));
  const uint64_t bytes = group_bytes_per_token(info, use);
  return {.name = "prefill group",
          .note = std::to_string(tokens) + " tokens that pass each layer together",
          .bytes = static_cast<uint64_t>(tokens) * bytes,
          .option = "--prefill-group",
          .unit_bytes = bytes,
          .least = 1};
}

MemoryPlan make_plan(const PlanOptions& options) {
  const std::unique_ptr<Device> device = make_host_device(options.model.threads);
  const std::unique_ptr<Model> model = load(options, *device);
  const ModelInfo& info = model->info();
  ExpertSettings settings = options.model.experts.resolve(info);
  // What surrounds the slots then is what all of them would need, so that auto takes as many as `all` is told
  // would fit.
  const bool takes_the_rest = settings.slots == 0;
  if (takes_the_rest) settings.slots = parse_slots("all", expert_shape(info));
  const int64_t context = options.context(info);
  check_request(options, context);
  if (options.model.context_tokens > context) {
    print_message("--context " + std::to_string(options.model.context_tokens) + ": the model was made for " +
                  std::to_string(context) + " tokens; these are used");
  }
  MemoryPlan plan;
  plan.add({.name = "dense weights", .bytes = info.dense_bytes});
  plan.add(slots_line(info, settings, takes_the_rest));
  plan.add(context_line(options, info, context));
  const Runtime runtime(*device, *model, settings);
  plan.add(scratch_line(options, *device, *model, settings.slots));
  if (settings.slots > 0 &&
      (settings.prefill == PrefillMode::kAuto || settings.prefill == PrefillMode::kLayerMajor)) {
    plan.add(group_line(runtime, settings, context));
  }
  plan.add({.name = "reserve",
            .note = "driver, CUDA context, modules, page tables of the host rows",
            .bytes = kReserveBytes});
  plan.add({.name = "expert rows",
            .note = "page-locked where a GPU reads them",
            .bytes = info.expert_bytes,
            .on_device = false});
  return plan;
}

Forecast forecast(const PlanOptions& options, const PlannedCard& card) {
  const Machine machine(options, card.name);
  const ModelInfo& info = machine.model->info();
  ExpertSettings settings = options.model.experts.resolve(info);
  if (settings.slots == 0) settings.slots = card.fit.rest_count;
  SimulatedRequest request = options.request;
  request.warm_tokens = kWarmTokens;
  Forecast result{settings.slots, run_on(options, machine, settings, request), {}, 0, 0};
  if (!options.trace_file.empty()) write_chrome_trace(machine.clock->timeline(), options.trace_file);
  if (info.moe_layers.empty()) return result;
  const ExpertShape shape = expert_shape(info);
  result.row_bytes = info.expert_bytes / static_cast<uint64_t>(shape.layers * shape.experts);
  request.warm_tokens = request.decode_tokens = 0;
  for (const Arm& arm : published_arms()) {
    const SimulatedRun run = run_on(options, machine, arm_settings(arm, shape), request);
    result.arms_ttft_ms.push_back(run.ttft_ms);
    result.arms_link_share = run.prefill_link_share;
  }
  return result;
}

/// For the cards that the plan fits; without --json each is printed when it is there.
void make_forecasts(const PlanOptions& options, std::FILE* out, std::vector<PlannedCard>& cards) {
  bool first = true;
  for (PlannedCard& card : cards) {
    if (!card.fit.fits || options.machines.empty()) continue;
    card.forecast = forecast(options, card);
    if (options.json) continue;
    if (first) print_forecasts_head(out, options.request);
    first = false;
    print_forecast(out, card);
  }
}

/// Throws UsageError. Without a simulation nothing runs.
void check_effects(const PlanOptions& options) {
  if (options.model.place.given() != options.shape.empty()) {
    throw UsageError("plan needs either --model or --shape");
  }
  const ExpertOptions& experts = options.model.experts;
  if (experts.cpu != "off") {
    throw UsageError(
        "--cpu-experts: the simulated clock knows no times of experts on the CPU; use "
        "--cpu-experts off");
  }
  const bool simulates = !options.machines.empty();
  experts.check_effects(simulates || experts.slots != "auto");
  const ExpertOptions defaults;
  const std::pair<const char*, bool> needs_a_run[] = {
      {"--lookahead", experts.lookahead != defaults.lookahead},
      {"--lookahead-budget", experts.budget != defaults.budget},
      {"--lookahead-stream", experts.lookahead_stream != defaults.lookahead_stream},
      {"--expert-policy", experts.policy != defaults.policy},
      {"--prefill-overlap", experts.overlap != defaults.overlap},
      {"--prefill-copy-priority", experts.copy_priority != defaults.copy_priority},
      {"--prefill-invalidate", experts.invalidate != defaults.invalidate},
      {"--prefill-hit", experts.hits != defaults.hits},
      {"--compute-share", options.compute_share != 1}};
  for (const auto& [name, set] : needs_a_run) {
    if (set && !simulates) throw UsageError(std::string(name) + ": has no effect without --simulate");
  }
}

/// The cards of --simulate, each with no more memory than --gpu-memory; or one that has so much, of which
/// nothing else is known. Throws UsageError.
std::vector<PlannedCard> cards_of(const PlanOptions& options, const MemoryPlan& plan) {
  std::vector<PlannedCard> cards;
  const auto most = options.gpu_memory.empty() ? std::numeric_limits<uint64_t>::max()
                                               : parse_gpu_memory(options.gpu_memory);
  const auto add = [&](const std::string& name, uint64_t bytes) {
    cards.push_back({name, bytes, plan.fit(bytes), {}});
  };
  for (const std::string& name : options.machines) {
    add(name, std::min(most, static_cast<uint64_t>(machine_model(name).device_bytes)));
  }
  if (options.machines.empty() && !options.gpu_memory.empty()) add("GPU", most);
  return cards;
}

void run_plan(const PlanOptions& options) {
  check_effects(options);
  FileUses files;
  if (options.model.place.given()) files.reads_folder("--model", options.model.place.folder());
  files.writes("--timeline", options.trace_file);
  files.check();
  std::FILE* const out = files.writes_standard_output() ? stderr : stdout;
  const MemoryPlan plan = make_plan(options);
  std::vector<PlannedCard> cards = cards_of(options, plan);
  if (!options.json) print_memory(out, plan, cards);
  make_forecasts(options, out, cards);
  if (options.json) std::fputs(plan_json(plan, cards).c_str(), out);
  std::string misfits;
  for (const PlannedCard& card : cards) {
    if (card.fit.fits) continue;
    misfits += (misfits.empty() ? "" : "; ") + card.name + ": does not fit: " + describe_misfit(card.fit);
  }
  if (!misfits.empty()) throw Error(ErrorCode::kOutOfMemory, misfits);
}

template <class List>
std::string names_of(const List& list) {
  std::string names;
  for (const auto& item : list) names += (names.empty() ? "" : ", ") + item.name;
  return names;
}

}  // namespace

void add_plan(Command& program) {
  auto options = std::make_shared<PlanOptions>();
  Command command =
      program.subcommand("plan", "What a model needs in memory, and a forecast for cards that are not there");
  command.footer(
      "The forecast runs the model's own streams, copies and events on a simulated clock: each operation "
      "costs what its\n"
      "declared bytes and arithmetic cost on the named card. --expert-slots auto stands for what that card "
      "has room "
      "for;\nthe slots are warm from another text. Cards (their rates: docs/plan.md): " +
      names_of(machine_models()) + ".\nShapes: " + names_of(model_shapes()) +
      "; their routes are drawn evenly and anew for every token, nothing is predicted.\n\n"
      "  $ sluice plan --shape q36 --gpu-memory 16GB --context 32768\n"
      "  $ sluice plan --model models/demo --expert-slots 25% --simulate rtx5070ti\n"
      "  $ sluice plan --shape q36 --simulate published,rtx4090,rtx5090 --prompt-tokens 64");
  // Nothing is served: no rows lie in host memory, and no trace or list of another run is read.
  options->model.without = {"--device",    "--gpu-memory",     "--report",
                            "--residency", "--warm-from",      "--audit",
                            "--numa",      "--lock-host-rows", "--host-memory-limit"};
  options->model.add_to(command, true, false);
  command.option("--shape", options->shape, "Sizes of a published model, in place of --model")
      .accepted_by([](const std::string& name) { model_shape(name); })
      .type("NAME");
  command
      .option("--gpu-memory", options->gpu_memory,
              "Plan for a GPU of this much memory, such as 16GB; with --simulate at most this much of each "
              "card's")
      .type("BYTES");
  const Argument simulated = command.option("--simulate", options->machines, "Cards to forecast for")
                                 .separated_by(',')
                                 .accepted_by([](const std::string& name) { machine_model(name); })
                                 .type("NAME,...");
  command.option("--prompt-tokens", options->request.prompt_tokens, "Length of the prompt")
      .at_least(1)
      .show_default()
      .needs(simulated);
  command.option("--tokens", options->request.decode_tokens, "Length of the answer")
      .at_least(1)
      .show_default()
      .needs(simulated);
  command
      .option("--compute-share", options->compute_share,
              "Share of the cards' compute and memory rate that the model gets, above 0 up to 1")
      .check([](const std::string& text) {
        const double share = std::strtod(text.c_str(), nullptr);
        return share > 0 && share <= 1 ? std::string() : text + " is not above 0 and at most 1";
      })
      .advanced();
  command.flag("--json", options->json, "Print one JSON object");
  command.option("--timeline", options->trace_file, "Write the last card's steps as a Chrome trace")
      .type("FILE")
      .needs(simulated);
  command.action([options] { run_plan(*options); });
}

}  // namespace sluice::apps
