// The flags that say how a model's experts are kept and moved.
#pragma once

#include <cstdint>
#include <string>

#include "engine/runtime.h"

namespace sluice::apps {

class Command;
class FileUses;

struct ExpertOptions {
  std::string slots = "auto", prefill = "auto", lookahead = "on", budget = "auto", policy = "lru",
              prefill_group = "auto", cpu = "off";
  std::string report_file, residency_file, warm_trace;
  int64_t audit_every = 0;
  // Switches for comparison with published engines.
  std::string overlap = "on", copy_priority = "high", invalidate = "epoch", hits = "in-place",
              lookahead_stream = "stacked";
  int64_t ring_slots = 0;

  void add_to(Command& command);
  /// Throws UsageError for an option that has no effect with the others as they are, and says what it needs.
  /// `has_slots`: whether experts will be in slots.
  void check_effects(bool has_slots) const;
  /// Adds --report, --residency and --warm-from.
  void add_files(FileUses& files) const;
  /// Throws Error kInvalidArgument for numbers of slots that do not fit the model.
  ExpertSettings resolve(const ModelInfo& info) const;

 private:
  void add_common(Command& command);
  void add_files(Command& command);
  void add_comparison(Command& command);
};

}  // namespace sluice::apps
