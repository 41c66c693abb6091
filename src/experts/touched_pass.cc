// The operations of a touched pass.
#include "experts/touched_pass.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "experts/cuda/expert_ops.h"
#include "experts/gather.h"
#include "experts/slot_ops.h"

namespace sluice {

TouchedPass::TouchedPass(ExpertState& state)
    : state_(state),
      row_of_(state.device.allocate_array<int32_t>(2 * state.shape.experts, "touched rows")),
      counters_(state.device.allocate_array<TransientCounters>(static_cast<int64_t>(state.layers.size()),
                                                               "touched counters")) {
  TransientCounters* counters = counters_.as<TransientCounters>();
  const auto n = static_cast<int64_t>(state.layers.size());
  state.compute.launch_both(
      {.name = "reset counters", .writes = {range_of(counters, n)}},
      [=](const HostContext&) { std::fill(counters, counters + n, TransientCounters()); },
      SLUICE_CUDA_OP(cuda::zero, counters, static_cast<size_t>(n) * sizeof(TransientCounters)));
}

bool TouchedPass::fits(int64_t rows) const {
  const int64_t most = std::min(rows * state_.shape.top_k, state_.shape.experts);
  return std::all_of(state_.pools.begin(), state_.pools.end(),
                     [&](const auto& pool) { return most <= pool->ring / 2; });
}

void TouchedPass::begin(int64_t adopt_rows) {
  SLUICE_CHECK_MSG(!state_.pass_open, "two passes at once");
  state_.pass_open = true;
  adopt_rows_ = adopt_rows;
  // Nothing is listed: whether an expert is resident is asked layer by layer, on the device.
  static const int32_t kNoLayer = -1;
  for (const auto& pool : state_.pools) {
    slot_ops::begin_region(state_.compute, pool->map.view(), static_cast<int32_t>(pool->ring), &kNoLayer, 0);
  }
}

void TouchedPass::run(Stream& compute, const MoeInput& input, float* y) {
  const auto l = static_cast<size_t>(input.layer);
  LayerState& layer = state_.layers[l];
  const SlotMapView& map = layer.pool->map.view();
  const auto half = static_cast<size_t>(layer.local % 2);
  const auto half_slots = static_cast<int32_t>(layer.pool->ring / 2);
  int32_t* row_of = row_of_.as<int32_t>() + static_cast<int64_t>(half) * state_.shape.experts;
  const int64_t n = input.routes.rows * input.routes.k;

  route_transient(compute, map, layer.local, input.routes.ids, n, static_cast<int32_t>(half) * half_slots,
                  half_slots, row_of, layer.demand->plan, counters_.as<TransientCounters>() + l,
                  state_.cpu_rule, state_.cpu_ids_scratch());
  state_.note(SlotWrite::kTouched, layer, layer.demand->plan);
  if (state_.cpu_rule) state_.cpu->post(compute, input, state_.cpu_ids_scratch());
  compute.record(*layer.planned);

  Stream& demand = *state_.demand;
  demand.wait(*layer.planned);
  state_.gather(demand, "gather touched", layer, *layer.demand, *layer.planned, n);
  demand.record(*layer.fetched);

  run_beside(compute, input);
  compute.wait(*layer.fetched);
  expert_products(compute, input.x, input.routes, layer.view(row_of), 0,
                  static_cast<int32_t>(state_.shape.experts), input.activations, input.outputs);
  if (state_.cpu_rule) state_.cpu->take(compute, input, state_.cpu_ids_scratch());
  const int64_t tail = std::min(adopt_rows_, input.routes.rows) * input.routes.k;
  if (tail > 0) {
    slot_ops::adopt(compute, map, layer.local, input.routes.ids + n - tail, tail, row_of,
                    layer.adopted->plan);
    state_.note(SlotWrite::kAdoption, layer, layer.adopted->plan);
    gather_rows(compute, "adopt experts", layer.adopted->plan, layer.pool->slot(0), layer.pool->slot(0),
                layer.pool->layout.row_bytes);
  }
  expert_sums(compute, input.outputs, input.routes, layer.rows->layout.hidden, y);
}

void TouchedPass::end() {
  if (!state_.pass_open) return;
  state_.pass_open = false;
  for (const LayerState& layer : state_.layers)
    state_.compute.wait(*layer.fetched);  // of a pass that was given up
  for (const auto& pool : state_.pools) slot_ops::end_region(state_.compute, pool->map.view());
}

}  // namespace sluice
