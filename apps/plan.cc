// `sluice plan`: what a model needs, and a forecast for cards that are not there.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "apps/arguments.h"
#include "apps/commands.h"
#include "apps/loaded_model.h"
#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "engine/simulation.h"
#include "models/shape_model.h"

namespace sluice::apps {
namespace {

constexpr int64_t kShapeContext = 20000;  // of a shape, where --context says nothing
constexpr int64_t kWarmTokens = 48;

struct PlanOptions {
  ModelOptions model;
  std::string shape;
  std::vector<std::string> machines;
  SimulatedRequest request;
  std::string trace_file;
  double compute_share = 1;

  int64_t context(const ModelInfo& info) const {
    if (model.context_tokens > 0) return std::min(model.context_tokens, info.max_positions);
    return shape.empty() ? info.max_positions
                         : std::max(kShapeContext, request.prompt_tokens + request.decode_tokens);
  }
};

/// The model of --model, or one of --shape's sizes without weights.
std::unique_ptr<Model> load(const PlanOptions& options, Device& device) {
  if (!options.shape.empty()) {
    return make_shape_model(device, model_shape(options.shape), options.model.chunk_tokens);
  }
  LoadOptions load;
  load.max_rows = options.model.chunk_tokens;
  load.threads = options.model.threads;
  return load_model(Checkpoint::open(options.model.folder), device, load);
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

/// --expert-slots auto: what the card has room for.
ExpertSettings settings_on(const PlanOptions& options, const Machine& machine) {
  const ModelInfo& info = machine.model->info();
  ExpertSettings settings = options.model.experts.resolve(info);
  if (settings.slots == 0) settings.slots = slots_for_card(info, machine.model_of, options.context(info));
  return settings;
}

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

void print_lines(const PlanOptions& options) {
  const std::unique_ptr<Device> device = make_host_device(options.model.threads);
  const std::unique_ptr<Model> model = load(options, *device);
  const ModelInfo& info = model->info();
  const ExpertSettings settings = options.model.experts.resolve(info);
  const int64_t context = options.context(info);
  check_request(options, context);
  if (options.model.context_tokens > context) {
    std::fprintf(stderr, "sluice: --context %lld: the model was made for %lld tokens; these are used\n",
                 static_cast<long long>(options.model.context_tokens), static_cast<long long>(context));
  }
  const uint64_t experts =
      static_cast<uint64_t>(info.moe_layers.size()) * static_cast<uint64_t>(info.experts);
  const auto slots = static_cast<uint64_t>(settings.slots) * (experts > 0 ? info.expert_bytes / experts : 0);
  const auto line = [](const char* name, uint64_t bytes, const std::string& note) {
    std::printf("%-16s %12s   %s\n", name, format_bytes(bytes).c_str(), note.c_str());
  };
  uint64_t device_bytes = 0;
  const auto device_line = [&](const char* name, uint64_t bytes, const std::string& note) {
    device_bytes += bytes;
    line(name, bytes, "device" + note);
  };
  device_line("dense weights", info.dense_bytes, "");
  if (settings.slots > 0) {
    device_line("expert slots", slots,
                "; " + std::to_string(settings.slots) + " of " + std::to_string(experts) + " experts");
  } else {
    std::printf("%-16s %12s   device; what the card has room for of %llu experts\n", "expert slots", "auto",
                static_cast<unsigned long long>(experts));
  }
  device_line("KV cache", static_cast<uint64_t>(info.kv.bytes_per_token() * context),
              "; " + std::to_string(context) + " tokens in f32");
  const Runtime runtime(*device, *model, settings);
  const auto memory = model->make_batch_memory(BatchUse::kAlone, model->max_rows());
  // Whatever was allocated and has no line of its own; a shape's expert rows are allocated, a model's mapped.
  const uint64_t lines = info.dense_bytes + slots + (options.shape.empty() ? 0 : info.expert_bytes);
  const uint64_t scratch = device->allocated_bytes() - std::min<uint64_t>(device->allocated_bytes(), lines);
  device_line("scratch", scratch,
              "; a chunk of " + std::to_string(model->max_rows()) + " tokens, slot maps and their tables");
  if (settings.slots > 0 &&
      (settings.prefill == PrefillMode::kAuto || settings.prefill == PrefillMode::kLayerMajor)) {
    const BatchUse use = runtime.resident()->splits_layers() ? BatchUse::kGroupInTiles : BatchUse::kGroup;
    const int64_t tokens = std::min(context, most_group_tokens(info, settings, use));
    device_line("prefill group", static_cast<uint64_t>(tokens) * group_bytes_per_token(info, use),
                "; " + std::to_string(tokens) + " tokens that pass each layer together");
  }
  line("expert rows", info.expert_bytes, "host, page-locked where a GPU reads them");
  for (const std::string& name : options.machines) {
    const auto card_bytes = static_cast<uint64_t>(machine_model(name).device_bytes);
    line(name.c_str(), card_bytes,
         (device_bytes <= card_bytes ? "fits: needs " : "DOES NOT FIT: needs ") + format_bytes(device_bytes) +
             (settings.slots == 0 ? " and slots in what is left" : ""));
  }
}

void print_forecast(const PlanOptions& options, const std::string& name) {
  const Machine machine(options, name);
  const ExpertSettings settings = settings_on(options, machine);
  SimulatedRequest request = options.request;
  request.warm_tokens = kWarmTokens;
  const SimulatedRun run = run_on(options, machine, settings, request);
  std::printf("%-12s %6lld %10.2f ms %9.1f %% %8.1f /s %9.1f %%", name.c_str(),
              static_cast<long long>(settings.slots), run.ttft_ms, 100 * run.prefill_link_share,
              run.tokens_per_s, 100 * run.decode_link_share);
  if (!options.trace_file.empty()) write_chrome_trace(machine.clock->timeline(), options.trace_file);
  if (machine.model->info().moe_layers.empty()) return void(std::printf("\n"));
  request.warm_tokens = request.decode_tokens = 0;
  for (const Arm& arm : published_arms()) {
    const ExpertShape shape = expert_shape(machine.model->info());
    const SimulatedRun arm_run = run_on(options, machine, arm_settings(arm, shape), request);
    std::printf(" %8.2f", arm_run.ttft_ms);
  }
  std::printf(" ms\n");
}

void run_plan(const PlanOptions& options) {
  if (options.model.folder.empty() == options.shape.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "plan needs either --model or --shape");
  }
  if (!options.shape.empty()) model_shape(options.shape);
  if (!(options.compute_share > 0 && options.compute_share <= 1)) {
    throw Error(ErrorCode::kInvalidArgument, "--compute-share is above 0 and at most 1");
  }
  if (!options.machines.empty() && options.model.experts.cpu != "off") {
    throw Error(
        ErrorCode::kUnsupported,
        "--simulate: the simulated clock knows no times of experts on the CPU; use --cpu-experts off");
  }
  for (const std::string& name : options.machines) machine_model(name);  // an unknown one is refused at once
  if (!options.trace_file.empty()) check_can_write(options.trace_file);
  print_lines(options);
  if (options.machines.empty()) return;
  std::printf(
      "\nforecast for a prompt of %lld tokens and %lld more, by simulation; the four arms: time to the first "
      "token\n"
      "where a streaming prompt moves every expert, with --prefill-copy-priority high, --prefill-invalidate "
      "epoch\n",
      static_cast<long long>(options.request.prompt_tokens),
      static_cast<long long>(options.request.decode_tokens));
  std::printf(
      "card          slots   first token   link busy      decode   link busy  neither priority    epoch     "
      "both\n");
  for (const std::string& name : options.machines) print_forecast(options, name);
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
      "  $ sluice plan --model models/demo --expert-slots 25% --simulate rtx5070ti\n"
      "  $ sluice plan --shape q36 --simulate published,rtx4090,rtx5090 --prompt-tokens 64");
  options->model.experts.can_report = false;  // a forecast moves no experts
  options->model.add_to(command, true, false);
  command.option("--shape", options->shape, "Sizes of a published model, in place of --model").type("NAME");
  const Argument simulated = command.option("--simulate", options->machines, "Cards to forecast for")
                                 .separated_by(',')
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
      .advanced();
  command.option("--timeline", options->trace_file, "Write the last card's steps as a Chrome trace")
      .type("FILE")
      .needs(simulated);
  command.action([options] { run_plan(*options); });
}

}  // namespace sluice::apps
