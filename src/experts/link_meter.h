// How long demand gathers take, measured on the stream that runs them.
#pragma once

#include <cstdint>

#include "device/device.h"
#include "experts/slot_map.h"

namespace sluice {

/// What crossed since the start.
struct LinkTotals {
  uint64_t rows = 0;
  int64_t busy_ns = 0;
};

/// Two operations around each gather write what a clock shows to pinned memory.
class LinkMeter {
 public:
  explicit LinkMeter(Device& device);
  void start(Stream& stream);
  /// Behind the gather of `plan`.
  void stop(Stream& stream, const CopyPlan& plan);
  /// After the host has waited for the stream.
  LinkTotals totals() const { return shared_->totals; }

 private:
  struct Shared {
    LinkTotals totals;
    int64_t start_ns;
  };
  Buffer memory_;
  Shared* shared_;
};

}  // namespace sluice
