// The flags that say how a model's experts are kept and moved, and the report of what happened.
#pragma once

#include <cstdint>
#include <string>

#include "engine/runtime.h"

namespace sluice::apps {

class Command;

struct ExpertOptions {
  std::string slots = "auto", prefill = "auto", lookahead = "on", budget = "auto", policy = "lru",
              prefill_group = "auto", cpu = "off";
  std::string report_file, residency_file, warm_trace;
  bool can_report = true;  // false: the command has no --report
  int64_t audit_every = 0;
  // Switches for comparison with published engines.
  std::string overlap = "on", copy_priority = "high", invalidate = "epoch", hits = "in-place",
              lookahead_stream = "stacked";
  int64_t ring_slots = 0;

  void add_to(Command& command);
  /// Throws Error kInvalidArgument for numbers of slots that do not fit the model.
  ExpertSettings resolve(const ModelInfo& info) const;
};

/// A few lines for people: hits, misses, predictions, bytes by cause, host waits.
std::string describe_report(const ExpertReport& report, const Device& device);
/// `total` and `layers` as JSON; see docs/report.md.
std::string report_json(const ExpertReport& report, const HostRowReport& rows, const Device& device);

}  // namespace sluice::apps
