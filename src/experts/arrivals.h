// Whether predicted experts came in time for the layer that wanted them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experts/expert_state.h"

namespace sluice {

/// Predictions of one layer, over all steps; in device memory.
struct ArrivalCounters {
  uint64_t wanted = 0;  // experts that the layer used in the step that had predicted them for it
  uint64_t again = 0;   // experts that it had to fetch although the step had predicted them
};

/// Behind a layer's ensure, while `predicted` is still this step's plan for the layer: compares it with the
/// ids [n] that the layer routes to (-1 is padding) and the misses in `demand`.
void count_arrivals(Stream& stream, const int32_t* ids, int64_t n, const CopyPlan& predicted,
                    const CopyPlan& demand, ArrivalCounters* counters);

/// Counts the wanted predictions whose copies had not ended when their layer asked for them. When that was
/// only the device's clock knows: it is read after the host has waited for the step, from events that order
/// the step anyway. Devices without a clock, and steps that were queued on top of each other, are not judged.
class ArrivalMeter {
 public:
  explicit ArrivalMeter(ExpertState& state);

  /// Of each layer [L].
  ArrivalCounters* counters() const { return counters_.as<ArrivalCounters>(); }
  /// A step with predictions was queued; `whole`: up to its end.
  void note_step(bool whole) { steps_ += whole ? 1 : 2; }
  /// Queues what learn() reads.
  void queue_sample();
  /// After the host has waited for the step.
  void learn();
  /// Late experts of each layer [L].
  std::span<const uint64_t> late() const { return late_; }

 private:
  bool came_late(const LayerState& layer) const;

  ExpertState& state_;
  Buffer counters_;
  std::vector<ArrivalCounters> seen_;  // when learn() last ran
  HostArray<ArrivalCounters> now_;     // from queue_sample()
  std::vector<uint64_t> late_;
  int steps_ = 0;  // since learn() ran
};

}  // namespace sluice
