// Touched prefill: only the experts that a prompt routes to cross the link, through a transient ring.
#pragma once

#include "experts/expert_state.h"
#include "experts/transient.h"

namespace sluice {

/// One pass of a chunk that is too long for a decode step and touches few experts. The plan is made on the
/// device: no host wait. Layers alternate between the two halves of the region [0, R); experts of the last
/// rows are adopted.
///
///   compute: begin -> route(l) -> [planned l] -> demand: gather(l) -> [fetched l] -> compute: products(l),
///   adopt(l)
/// Slots come back by [planned] alone: it is recorded behind the products and adoptions of earlier layers.
class TouchedPass final : public MoeExecutor {
 public:
  explicit TouchedPass(ExpertState& state);

  /// Whether every expert that `rows` tokens can route to finds a place in half of the region.
  bool fits(int64_t rows) const;
  void begin(int64_t adopt_rows);
  void run(Stream& compute, const MoeInput& input, float* y) override;
  void end();

  /// Of every layer, in device memory.
  const TransientCounters* counters() const { return counters_.as<TransientCounters>(); }

 private:
  ExpertState& state_;
  Buffer row_of_;    // [2][E], by half
  Buffer counters_;  // [L]
  int64_t adopt_rows_ = 0;
};

}  // namespace sluice
