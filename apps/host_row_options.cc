// Flags of host rows, and their lines for people.
#include "apps/host_row_options.h"

#include <cmath>

#include "apps/arguments.h"
#include "base/error.h"

namespace sluice::apps {
namespace {

// "0-2, 5"
std::string ranges(const std::vector<int64_t>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(numbers[i]);
    if (last > i) text += "-" + std::to_string(numbers[last]);
    i = last + 1;
  }
  return text;
}

uint64_t parse_limit(const std::string& text) {
  const std::optional<uint64_t> bytes = parse_bytes(text);
  if (bytes && *bytes > 0) return *bytes;
  throw Error(ErrorCode::kInvalidArgument,
              "--host-memory-limit " + text + ": expected a number of bytes, such as 800MB or 16GB");
}

}  // namespace

void HostRowFlags::add_to(Command& command) {
  command
      .option("--numa", numa,
              "Where expert rows lie in host memory: gpu (near the GPU, or near this process, while there is "
              "room), interleave (over all nodes), or node:K")
      .accepted_by([](const std::string& text) { parse_numa(text, numa_nodes()); })
      .group("Experts")
      .show_default();
  command
      .option(
          "--lock-host-rows", lock,
          "Page-lock expert rows: auto (where a GPU reads them), on, off, or required (an error where the "
          "system refuses; otherwise such layers are staged through a locked ring)")
      .one_of({"auto", "on", "off", "required"})
      .advanced();
  command
      .option("--host-memory-limit", memory_limit,
              "Host memory that counts as free, such as 16GB; no more than the system says")
      .accepted_by([](const std::string& text) { parse_limit(text); })
      .type("BYTES")
      .advanced();
}

HostRowOptions HostRowFlags::resolve() const {
  HostRowOptions options;
  options.numa = parse_numa(numa, numa_nodes());
  options.lock = lock == "on"         ? LockMode::kOn
                 : lock == "off"      ? LockMode::kOff
                 : lock == "required" ? LockMode::kRequired
                                      : LockMode::kAuto;
  if (!memory_limit.empty()) options.memory_limit = parse_limit(memory_limit);
  return options;
}

std::string describe_refusals(const HostRowReport& report) {
  std::string text;
  if (!report.staged_layers.empty()) {
    text += "note: " + report.refusal + "; MoE layers " + ranges(report.staged_layers) +
            " are staged: host threads copy each of their experts once more on its way\n";
  }
  if (!report.numa_refusal.empty()) {
    text += "note: --numa is not followed (" + report.numa_refusal +
            "); expert rows lie on the nodes of the threads that read them\n";
  }
  return text;
}

std::string describe_host_rows(const HostRowReport& report) {
  std::string text = "expert rows: " + format_bytes(report.bytes) + " in host memory, " +
                     format_bytes(report.locked_bytes) + " page-locked";
  if (!report.staged_layers.empty()) text += ", MoE layers " + ranges(report.staged_layers) + " staged";
  if (!report.share.unknown.empty()) return text + "; nodes unknown (" + report.share.unknown + ")\n";
  uint64_t known = 0;
  for (const auto& [node, bytes] : report.share.node_bytes) known += bytes;
  for (const auto& [node, bytes] : report.share.node_bytes) {
    const double percent = 100.0 * static_cast<double>(bytes) / static_cast<double>(known);
    text += "; node " + std::to_string(node) + " " + std::to_string(std::lround(percent)) + " %";
  }
  return text + "\n";
}

}  // namespace sluice::apps
