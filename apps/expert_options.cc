// Flags of expert residency.
#include "apps/expert_options.h"

#include <algorithm>
#include <charconv>

#include "apps/arguments.h"
#include "apps/file_uses.h"
#include "apps/usage_error.h"
#include "base/error.h"
#include "experts/residency_file.h"
#include "experts/slot_count.h"

namespace sluice::apps {
namespace {

constexpr const char* kGroup = "Experts";

/// 0 for auto.
int64_t whole_number_or_auto(const char* flag, const std::string& text) {
  if (text == "auto") return 0;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1) {
    throw Error(ErrorCode::kInvalidArgument,
                std::string(flag) + " " + text + ": expected a number from 1 up, or auto");
  }
  return value;
}

}  // namespace

void ExpertOptions::add_to(Command& command) {
  add_common(command);
  add_files(command);
  add_comparison(command);
}

void ExpertOptions::add_common(Command& command) {
  command
      .option(
          "--expert-slots", slots,
          "Slots of device memory for experts: a number, a share of all experts such as 25%, all, or auto "
          "(without a GPU: experts are read where they lie). Layers of several formats share them by their "
          "number")
      .accepted_by([](const std::string& text) {
        if (text != "auto" && text != "all") parse_expert_slots(text);  // the rest depends on the model
      })
      .group(kGroup)
      .show_default();
  command.option("--prefill-mode", prefill, "How a prompt's experts cross the link")
      .one_of({"auto", "stream", "touched", "layer-major"})
      .group(kGroup)
      .show_default();
  command.option("--lookahead", lookahead, "Fetch the experts that the next layer will probably want")
      .one_of({"off", "measure", "on"})
      .group(kGroup)
      .show_default();
  command.option("--lookahead-budget", budget, "Most predictions a layer and token, or auto")
      .accepted_by([](const std::string& text) { whole_number_or_auto("--lookahead-budget", text); })
      .group(kGroup)
      .show_default();
  command.option("--expert-policy", policy, "Which expert goes when a slot is needed")
      .one_of({"lru", "scored"})
      .group(kGroup)
      .show_default();
  command
      .option("--cpu-experts", cpu,
              "Compute missing experts on the CPU while others cross the link: always, or where it is "
              "measured to be faster (default: off without a GPU, which has no link to save)")
      .one_of({"off", "auto", "always"})
      .group(kGroup);
  command.option("--audit", audit_every, "Every N steps compare all slots with host memory; 0 is off")
      .at_least(0)
      .group(kGroup)
      .show_default();
}

void ExpertOptions::add_files(Command& command) {
  command.option("--report", report_file, "Write what happened to the experts as JSON")
      .type("FILE")
      .group(kGroup);
  command
      .option("--residency", residency_file,
              "Start with the experts that this file names, and write it at the end; results are the same "
              "with and without")
      .type("FILE")
      .group(kGroup);
  command
      .option("--warm-from", warm_trace,
              "Start with the experts that a trace (sluice trace record) uses most")
      .type("TRACE")
      .group(kGroup);
}

void ExpertOptions::add_comparison(Command& command) {
  command.option("--prefill-overlap", overlap, "off: copies run on the compute stream")
      .one_of({"on", "off"})
      .advanced();
  command.option("--prefill-copy-priority", copy_priority, "Priority of the copy stream")
      .one_of({"high", "default"})
      .advanced();
  command.option("--prefill-invalidate", invalidate, "Unmap borrowed slots once a pass, or layer by layer")
      .one_of({"epoch", "layer"})
      .advanced();
  command
      .option("--prefill-hit", hits,
              "What a streaming pass does with resident experts; off: they cross again, and none is kept "
              "afterwards")
      .one_of({"in-place", "d2d", "off"})
      .advanced();
  command
      .option(
          "--lookahead-stream", lookahead_stream,
          "Where the next layer's router runs: in one product with this layer's, or on a stream of its own")
      .one_of({"stacked", "side"})
      .advanced();
  command.option("--prefill-ring", ring_slots, "Slots that a pass borrows (two tiles); 0 chooses")
      .at_least(0)
      .advanced();
  command
      .option(
          "--prefill-group", prefill_group,
          "Most tokens of a prompt that pass each layer together (layer-major), or auto: what 256 MiB hold")
      .accepted_by([](const std::string& text) { whole_number_or_auto("--prefill-group", text); })
      .advanced();
}

void ExpertOptions::check_effects(bool has_slots) const {
  const ExpertOptions defaults;
  struct Option {
    const char* name;
    bool set;
    bool works = true;  // where experts have slots
    const char* needs = "";
  };
  const Option options[] = {
      {"--prefill-mode", prefill != defaults.prefill},
      {"--lookahead", lookahead != defaults.lookahead},
      {"--lookahead-budget", budget != defaults.budget, lookahead == "on", "--lookahead on"},
      {"--lookahead-stream", lookahead_stream != defaults.lookahead_stream, lookahead != "off",
       "--lookahead on or measure"},
      {"--expert-policy", policy != defaults.policy},
      {"--cpu-experts", cpu != defaults.cpu},
      {"--audit", audit_every != defaults.audit_every},
      {"--report", !report_file.empty()},
      {"--residency", !residency_file.empty()},
      {"--warm-from", !warm_trace.empty()},
      {"--prefill-overlap", overlap != defaults.overlap},
      {"--prefill-copy-priority", copy_priority != defaults.copy_priority, overlap == "on",
       "--prefill-overlap on"},
      {"--prefill-invalidate", invalidate != defaults.invalidate},
      {"--prefill-hit", hits != defaults.hits},
      {"--prefill-ring", ring_slots != defaults.ring_slots},
      {"--prefill-group", prefill_group != defaults.prefill_group,
       prefill == "auto" || prefill == "layer-major", "--prefill-mode auto or layer-major"},
  };
  for (const Option& option : options) {
    if (!option.set) continue;
    if (!has_slots) {
      throw UsageError(std::string(option.name) +
                       ": experts have no slots; give --expert-slots a number or a share");
    }
    if (!option.works) {
      throw UsageError(std::string(option.name) + ": has no effect without " + option.needs);
    }
  }
}

void ExpertOptions::add_files(FileUses& files) const {
  if (!warm_trace.empty()) files.reads("--warm-from", warm_trace);
  files.writes("--report", report_file);
  // Read at the start, replaced at the end; it may lie in the model's folder.
  std::vector<std::string> may_replace = {"--warm-from"};
  if (is_residency_file(residency_file)) may_replace.push_back("--model");
  files.writes("--residency", residency_file, may_replace);
}

ExpertSettings ExpertOptions::resolve(const ModelInfo& info) const {
  const ExpertShape shape = expert_shape(info);
  ExpertSettings s;
  s.slots = parse_slots(slots, shape);
  s.ring_slots = ring_slots;
  s.prefill = prefill == "stream"        ? PrefillMode::kStream
              : prefill == "touched"     ? PrefillMode::kTouched
              : prefill == "layer-major" ? PrefillMode::kLayerMajor
                                         : PrefillMode::kAuto;
  s.prefill_group = whole_number_or_auto("--prefill-group", prefill_group);
  s.lookahead = lookahead == "off"  ? LookaheadMode::kOff
                : lookahead == "on" ? LookaheadMode::kOn
                                    : LookaheadMode::kMeasure;
  // A layer has no more experts to predict.
  s.lookahead_budget = std::min(whole_number_or_auto("--lookahead-budget", budget), shape.experts);
  s.policy = policy == "scored" ? SlotPolicy::kScored : SlotPolicy::kLru;
  s.cpu.mode = cpu == "off" ? CpuMode::kOff : cpu == "auto" ? CpuMode::kAuto : CpuMode::kAlways;
  s.audit_every = audit_every;
  s.compare.overlap = overlap == "on";
  s.compare.high_copy_priority = copy_priority == "high";
  s.compare.side_lookahead = lookahead_stream == "side";
  s.compare.epoch_invalidation = invalidate == "epoch";
  s.compare.hits = hits == "in-place" ? HitMode::kInPlace
                   : hits == "d2d"    ? HitMode::kDeviceToDevice
                                      : HitMode::kOff;
  const bool wants_slots = !report_file.empty() || !residency_file.empty() || !warm_trace.empty();
  if (s.slots == 0 && wants_slots && slots != "auto") {
    throw Error(ErrorCode::kInvalidArgument, "--expert-slots " + slots + ": the model has no experts");
  }
  if (s.slots > 0)
    sluice::ring_slots(shape, s.slots, s.ring_slots);  // throws before anything is loaded into slots
  return s;
}

}  // namespace sluice::apps
