// Flags of expert residency, and its report.
#include "apps/expert_options.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "apps/arguments.h"
#include "apps/file_uses.h"
#include "apps/usage_error.h"
#include "base/error.h"
#include "base/units.h"
#include "experts/residency_file.h"

namespace sluice::apps {
namespace {

constexpr const char* kGroup = "Experts";

// So large that only what is wrong in every model is refused.
constexpr ExpertShape kAnyShape{int64_t{1} << 31, int64_t{1} << 31, 1};

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string percent(uint64_t part, uint64_t whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share(part, whole));
  return text;
}

ExpertLayerReport sum(const ExpertReport& report) {
  ExpertLayerReport total;
  for (const ExpertLayerReport& layer : report.layers) {
    total.routed += layer.routed;
    total.hits += layer.hits;
    total.misses += layer.misses;
    total.cpu += layer.cpu;
    total.predicted += layer.predicted;
    total.predicted_used += layer.predicted_used;
    total.stalls += layer.stalls;
    total.touched_distinct += layer.touched_distinct;
    total.touched_misses += layer.touched_misses;
    total.touched_cpu += layer.touched_cpu;
    total.streamed_cpu += layer.streamed_cpu;
    total.streamed_cpu_rows += layer.streamed_cpu_rows;
    total.late += layer.late;
    total.duplicate += layer.duplicate;
  }
  return total;
}

nlohmann::ordered_json layer_json(const ExpertLayerReport& layer) {
  return {{"routed", layer.routed},
          {"hits", layer.hits},
          {"misses", layer.misses},
          {"cpu", layer.cpu},
          {"predicted", layer.predicted},
          {"predicted_used", layer.predicted_used},
          {"stalls", layer.stalls},
          {"touched", layer.touched_distinct},
          {"touched_misses", layer.touched_misses},
          {"touched_cpu", layer.touched_cpu},
          {"streamed_cpu", layer.streamed_cpu},
          {"streamed_cpu_rows", layer.streamed_cpu_rows},
          {"bytes",
           {{"demand", layer.misses * layer.row_bytes},
            {"predicted", layer.predicted * layer.row_bytes},
            {"touched", layer.touched_misses * layer.row_bytes},
            {"late", layer.late * layer.row_bytes},
            {"duplicate", layer.duplicate * layer.row_bytes}}},
          {"forecast", {{"wanted", layer.forecast.wanted}, {"at_rank", layer.forecast.at_rank}}},
          {"row_bytes", layer.row_bytes}};
}

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

std::string describe_cpu(const CpuReport& cpu) {
  if (cpu.mode == CpuMode::kOff) return {};
  char text[400];
  std::snprintf(
      text, sizeof text,
      "experts on the CPU: %s; %llu experts by %d thread%s, busy %.1f ms, waited for %.1f ms\n",
      cpu.mode == CpuMode::kAlways ? "always"
                                   : ("auto, " + cpu.verdict + "; streamed prompts: " + cpu.passes).c_str(),
      static_cast<unsigned long long>(cpu.totals.experts), cpu.threads, cpu.threads == 1 ? "" : "s",
      static_cast<double>(cpu.totals.busy_ns) / 1e6, static_cast<double>(cpu.totals.waited_ns) / 1e6);
  return text;
}

nlohmann::ordered_json cpu_json(const CpuReport& cpu) {
  nlohmann::ordered_json json = {{"mode", cpu.mode == CpuMode::kAlways ? "always" : "auto"},
                                 {"threads", cpu.threads},
                                 {"experts", cpu.totals.experts},
                                 {"rows", cpu.totals.rows},
                                 {"busy_ms", static_cast<double>(cpu.totals.busy_ns) / 1e6},
                                 {"waited_ms", static_cast<double>(cpu.totals.waited_ns) / 1e6},
                                 {"silences", cpu.silences}};
  if (cpu.mode == CpuMode::kAuto) {
    json["verdict"] = cpu.verdict;
    json["fetched_share"] = cpu.fraction;
    json["pass_verdict"] = cpu.passes;
  }
  return json;
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
      .accepted_by([](const std::string& text) { parse_slots(text, kAnyShape); })
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

std::string describe_report(const ExpertReport& report, const Device& device) {
  const ExpertLayerReport total = sum(report);
  std::string text =
      "experts: " + std::to_string(report.slots) + " slots (" + std::to_string(report.ring_slots) +
      " lent to a streaming prompt); decode: " + std::to_string(total.routed) + " routed, " +
      std::to_string(total.hits) + " hits (" + percent(total.hits, total.routed) + "), " +
      std::to_string(total.misses) + " misses, " + std::to_string(total.cpu) + " on the CPU, " +
      std::to_string(total.stalls) + " stalls; predicted " + std::to_string(total.predicted) + ", used " +
      std::to_string(total.predicted_used) + "\n";
  text += "bytes moved: demand " + format_bytes(report.demand_bytes) + ", streamed " +
          format_bytes(report.streamed_bytes) + ", touched " + format_bytes(report.touched_bytes) +
          ", predicted and used " + format_bytes(report.predicted_used_bytes) + " (late " +
          format_bytes(report.late_bytes) + "), predicted in vain " +
          format_bytes(report.predicted_bytes - report.predicted_used_bytes) + "; of all, duplicate " +
          format_bytes(report.duplicate_bytes) + "\n";
  text += describe_cpu(report.cpu);
  if (report.warm.rows + report.idle.rows > 0) {
    text += "empty slots filled: " + std::to_string(report.warm.rows) + " at the start (" +
            format_bytes(report.warm.bytes) + "), " + std::to_string(report.idle.rows) + " while idle (" +
            format_bytes(report.idle.bytes) + ")\n";
  }
  for (const PassRecord& pass : report.passes) {
    char line[200];
    const std::string with_cpu =
        pass.cpu_experts > 0 ? " with " + std::to_string(pass.cpu_experts) + " experts left to the CPU" : "";
    std::snprintf(
        line, sizeof line, "prompt pass: %lld tokens in %lld chunks, %s%s, predicted %.1f ms, took %.1f ms\n",
        static_cast<long long>(pass.rows), static_cast<long long>(pass.chunks),
        std::string(name_of(pass.way)).c_str(), with_cpu.c_str(), pass.predicted_ms, pass.actual_ms);
    text += line;
    if (!pass.fallback.empty()) text += "  " + pass.fallback + "\n";
  }
  text += "host waits:";
  for (const auto& [why, count] : device.host_waits()) text += " " + why + " " + std::to_string(count) + ";";
  text.back() = '\n';
  return text;
}

namespace {

nlohmann::ordered_json host_rows_json(const HostRowReport& rows) {
  auto nodes = nlohmann::ordered_json::object();
  for (const auto& [node, bytes] : rows.share.node_bytes) nodes[std::to_string(node)] = bytes;
  return {{"bytes", rows.bytes},
          {"locked_bytes", rows.locked_bytes},
          {"staged_layers", rows.staged_layers},
          {"refusal", rows.refusal},
          {"node_bytes", nodes},
          {"node_refusal", rows.numa_refusal.empty() ? rows.share.unknown : rows.numa_refusal}};
}

}  // namespace

std::string report_json(const ExpertReport& report, const HostRowReport& rows, const Device& device) {
  nlohmann::ordered_json total = layer_json(sum(report));
  total.erase("row_bytes");
  total.erase("forecast");
  total["bytes"] = {{"demand", report.demand_bytes},
                    {"streamed", report.streamed_bytes},
                    {"touched", report.touched_bytes},
                    {"predicted_used", report.predicted_used_bytes},
                    {"predicted_wasted", report.predicted_bytes - report.predicted_used_bytes},
                    {"late", report.late_bytes},
                    {"duplicate", report.duplicate_bytes},
                    {"warm", report.warm.bytes},
                    {"idle", report.idle.bytes}};
  if (report.cpu.mode != CpuMode::kOff) total["cpu_experts"] = cpu_json(report.cpu);
  total["warm_filled"] = report.warm.rows;
  total["idle_filled"] = report.idle.rows;
  total["resizes"] = report.resizes;
  total["host_rows"] = host_rows_json(rows);
  total["slots"] = report.slots;
  total["ring_slots"] = report.ring_slots;
  total["decode_steps"] = report.decode_steps;
  total["lookahead_budget"] = report.lookahead_budget;
  auto& waits = total["host_waits"] = nlohmann::ordered_json::object();
  for (const auto& [why, count] : device.host_waits()) waits[why] = count;
  auto& passes = total["passes"] = nlohmann::ordered_json::array();
  for (const PassRecord& pass : report.passes) {
    passes.push_back({{"way", name_of(pass.way)},
                      {"tokens", pass.rows},
                      {"chunks", pass.chunks},
                      {"resident_rows", pass.resident_rows},
                      {"streamed_bytes", pass.streamed_bytes},
                      {"cpu_experts", pass.cpu_experts},
                      {"predicted_bytes", pass.predicted_bytes},
                      {"predicted_ms", pass.predicted_ms},
                      {"actual_ms", pass.actual_ms}});
    if (!pass.fallback.empty()) passes.back()["fallback"] = pass.fallback;
  }
  auto& ways = total["pass_totals"] = nlohmann::ordered_json::object();
  for (size_t w = 0; w < report.totals.size(); ++w) {
    const PassTotals& totals = report.totals[w];
    if (totals.passes == 0) continue;
    ways[std::string(name_of(static_cast<PassWay>(w)))] = {{"passes", totals.passes},
                                                           {"tokens", totals.rows},
                                                           {"streamed_bytes", totals.streamed_bytes},
                                                           {"predicted_ms", totals.predicted_ms},
                                                           {"actual_ms", totals.actual_ms}};
  }
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (const ExpertLayerReport& layer : report.layers) layers.push_back(layer_json(layer));
  return nlohmann::ordered_json{{"total", total}, {"layers", layers}}.dump(2) + "\n";
}

}  // namespace sluice::apps
