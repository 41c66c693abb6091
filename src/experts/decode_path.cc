// The operations of a decode step's MoE layers.
#include "experts/decode_path.h"

#include <algorithm>

#include "experts/forecast.h"
#include "experts/gather.h"
#include "experts/slot_ops.h"

namespace sluice {
namespace {

constexpr int32_t kDefaultBudget = 4;  // predictions a layer and step (published: +22 % decode with 4)

}  // namespace

DecodePath::DecodePath(ExpertState& state)
    : state_(state),
      predicted_ids_(state.device.allocate_array<int32_t>(
          static_cast<int64_t>(state.layers.size()) * state.shape.experts, "forecasts")),
      counters_(state.device.allocate_array<ForecastCounters>(static_cast<int64_t>(state.layers.size()),
                                                              "forecasts")),
      budget_(state.device.allocate_array<int32_t>(1, "prediction budget")) {
  const auto wish = static_cast<int32_t>(state.settings.lookahead_budget);
  const int32_t budget =
      state.settings.lookahead == LookaheadMode::kOn ? (wish > 0 ? wish : kDefaultBudget) : 0;
  int32_t* target = budget_.as<int32_t>();
  state.compute.launch({.name = "set budget", .writes = {range_of(target, 1)}},
                       [=](const HostContext&) { *target = budget; });
  auto* counters = counters_.as<ForecastCounters>();
  const auto n = static_cast<int64_t>(state.layers.size());
  state.compute.launch({.name = "reset forecasts", .writes = {range_of(counters, n)}},
                       [=](const HostContext&) { std::fill(counters, counters + n, ForecastCounters()); });
}

void DecodePath::predict(const MoeInput& input) {
  const auto next = static_cast<size_t>(input.layer) + 1;
  LayerState& layer = state_.layers[next];
  rank_forecast(state_.compute, input.next_logits, input.routes.rows, state_.shape.experts,
                state_.shape.top_k, forecast_of(next));
  forecast_layer_ = next;
  const ProtocolMutations& mutations = state_.settings.mutations;
  if (mutations.forget_running_call) mutated::forget_running_call(state_.compute, layer.pool->map.view());
  Stream& writer = mutations.predict_stream_installs ? *state_.predict : state_.compute;
  slot_ops::install_predictions(writer, layer.pool->map.view(), layer.local, forecast_of(next),
                                state_.shape.experts, budget_.as<int32_t>(), predicted_plan(next));
}

const CopyPlan& DecodePath::predicted_plan(size_t layer) const {
  return state_.layers[state_.settings.mutations.one_predicted_plan ? 0 : layer].predicted->plan;
}

void DecodePath::run(Stream& compute, const MoeInput& input, float* y) {
  LayerState& layer = state_.layers[static_cast<size_t>(input.layer)];
  const SlotMapView& map = layer.pool->map.view();
  const int64_t n = input.routes.rows * input.routes.k;
  compute.copy("ids to ensure", state_.ids_scratch(), input.routes.ids,
               static_cast<size_t>(n) * sizeof(int32_t));
  slot_ops::ensure(compute, map, layer.local, state_.ids_scratch(), n, layer.demand->plan);
  if (forecast_layer_ != 0 && forecast_layer_ == static_cast<size_t>(input.layer)) {
    count_forecast(compute, input.routes.ids, n, state_.shape.experts, forecast_of(forecast_layer_),
                   counters_.as<ForecastCounters>() + input.layer);
  }
  const bool ahead = wants_lookahead() && input.next_logits != nullptr;
  if (ahead) predict(input);
  compute.record(*layer.planned);

  Stream& demand = *state_.demand;
  demand.wait(*layer.planned);
  demand.wait(*layer.forecast);
  gather_rows(demand, "gather misses", layer.demand->plan, layer.rows->rows.as<std::byte>(),
              layer.pool->slot(0), layer.pool->layout.row_bytes);
  demand.record(*layer.fetched);
  if (ahead) {
    LayerState& next = state_.layers[static_cast<size_t>(input.layer) + 1];
    Stream& predict = *state_.predict;
    predict.wait(*layer.fetched);  // behind [planned] already
    gather_rows(predict, "gather predictions", predicted_plan(static_cast<size_t>(input.layer) + 1),
                next.rows->rows.as<std::byte>(), next.pool->slot(0), next.pool->layout.row_bytes);
    predict.record(*next.forecast);
    predicted_any_ = true;
  }

  compute.wait(*layer.fetched);
  expert_products(compute, input.x, input.routes, layer.view(layer.slot_of()), 0,
                  static_cast<int32_t>(state_.shape.experts), input.activations, input.outputs);
  expert_sums(compute, input.outputs, input.routes, layer.rows->layout.hidden, y);
}

void DecodePath::end_step() {
  if (predicted_any_) {
    // The demand of each layer was joined by its products; what was predicted last may be under way.
    for (LayerState& layer : state_.layers) state_.compute.wait(*layer.forecast);
  }
  predicted_any_ = false;
  forecast_layer_ = 0;
}

}  // namespace sluice
