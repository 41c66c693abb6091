// Lines for people, and JSON.
#include "apps/expert_report.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "base/units.h"

namespace sluice::apps {
namespace {

constexpr size_t kPassesShown = 3;

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

std::string describe_cpu(const CpuReport& cpu) {
  if (cpu.mode == CpuMode::kOff) return {};
  char text[400];
  std::snprintf(
      text, sizeof text, "experts on the CPU: %s; %s by %s, busy %.1f ms, waited for %.1f ms\n",
      cpu.mode == CpuMode::kAlways ? "always"
                                   : ("auto, " + cpu.verdict + "; streamed prompts: " + cpu.passes).c_str(),
      counted(cpu.totals.experts, "expert").c_str(), counted(cpu.threads, "thread").c_str(),
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

/// What the counts below are of: the prompts, or last chunks of prompts, that went the way of decode steps
/// count with these.
std::string forwards_of(const ExpertReport& report) {
  const uint64_t prompts = report.totals[static_cast<size_t>(PassWay::kEnsure)].passes;
  const std::string short_prompts = counted(prompts, "short prompt pass", "short prompt passes");
  if (prompts == 0) return "decode";
  return report.decode_steps == 0 ? short_prompts : "decode and " + short_prompts;
}

std::string describe_pass(const PassRecord& pass) {
  std::string text = "prompt pass: " + counted(pass.rows, "token") + " in " + counted(pass.chunks, "chunk") +
                     ", " + std::string(name_of(pass.way));
  if (pass.cpu_experts > 0) text += " with " + counted(pass.cpu_experts, "expert") + " left to the CPU";
  char times[80];
  std::snprintf(times, sizeof times, ", predicted %.1f ms, took %.1f ms\n", pass.predicted_ms,
                pass.actual_ms);
  text += times;
  return pass.fallback.empty() ? text : text + "  " + pass.fallback + "\n";
}

/// A line a pass; of many the sums by way, and the last ones.
std::string describe_passes(const ExpertReport& report) {
  std::string text;
  uint64_t passes = 0;
  for (size_t w = 0; w < report.totals.size(); ++w) {
    const PassTotals& totals = report.totals[w];
    if (totals.passes == 0) continue;
    passes += totals.passes;
    char times[80];
    std::snprintf(times, sizeof times, ", predicted %.1f ms, took %.1f ms\n", totals.predicted_ms,
                  totals.actual_ms);
    text += "prompt passes, " + std::string(name_of(static_cast<PassWay>(w))) + ": " +
            std::to_string(totals.passes) + " with " + counted(totals.rows, "token") + ", streamed " +
            format_bytes(totals.streamed_bytes) + times;
  }
  if (passes <= kPassesShown) text.clear();
  const size_t shown = std::min(kPassesShown, report.passes.size());
  if (passes > kPassesShown) text += "the last " + std::to_string(shown) + " of them:\n";
  for (size_t i = report.passes.size() - shown; i < report.passes.size(); ++i) {
    text += describe_pass(report.passes[i]);
  }
  return text;
}

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

std::string describe_report(const ExpertReport& report, const Device& device) {
  const ExpertLayerReport total = sum(report);
  std::string text = "experts: " + counted(report.slots, "slot") + " (" + std::to_string(report.ring_slots) +
                     " lent to a streaming prompt); " + forwards_of(report) + ": " +
                     std::to_string(total.routed) + " routed, " + counted(total.hits, "hit") + " (" +
                     percent(total.hits, total.routed) + "), " + counted(total.misses, "miss", "misses") +
                     ", " + std::to_string(total.cpu) + " on the CPU, " + counted(total.stalls, "stall") +
                     "; predicted " + std::to_string(total.predicted) + ", used " +
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
  text += describe_passes(report);
  text += "host waits:";
  for (const auto& [why, count] : device.host_waits()) text += " " + why + " " + std::to_string(count) + ";";
  text.back() = '\n';
  return text;
}

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
