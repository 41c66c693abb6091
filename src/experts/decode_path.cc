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
  if (state.settings.compare.side_lookahead && state.settings.lookahead != LookaheadMode::kOff) {
    side_ = state.device.make_stream("side", Priority::kNormal);
    forked_ = state.device.make_event("forked");
    ranked_ = state.device.make_event("ranked");
    installed_ = state.device.make_event("installed");
  }
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

Stream& DecodePath::fork_lookahead(Stream& compute) {
  if (!side_) return compute;
  compute.record(*forked_);
  side_->wait(*forked_);
  side_open_ = true;
  return *side_;
}

void DecodePath::join_side() {
  side_->record(*ranked_);
  state_.compute.wait(*ranked_);
  side_open_ = false;
}

void DecodePath::rank(Stream& stream, const MoeInput& input) {
  forecast_layer_ = static_cast<size_t>(input.layer) + 1;
  rank_forecast(stream, input.next_logits, input.routes.rows, state_.shape.experts, state_.shape.top_k,
                forecast_of(forecast_layer_));
}

void DecodePath::install(size_t layer_number) {
  LayerState& layer = state_.layers[layer_number];
  const ProtocolMutations& mutations = state_.settings.mutations;
  if (mutations.forget_running_call) mutated::forget_running_call(state_.compute, layer.pool->map.view());
  Stream& writer = mutations.predict_stream_installs ? *state_.predict : state_.compute;
  slot_ops::install_predictions(writer, layer.pool->map.view(), layer.local, forecast_of(layer_number),
                                state_.shape.experts, budget_.as<int32_t>(), predicted_plan(layer_number));
}

const CopyPlan& DecodePath::predicted_plan(size_t layer) const {
  return state_.layers[state_.settings.mutations.one_predicted_plan ? 0 : layer].predicted->plan;
}

void DecodePath::gather_misses(LayerState& layer) {
  Stream& demand = *state_.demand;
  demand.wait(*layer.planned);
  demand.wait(*layer.forecast);
  gather_rows(demand, "gather misses", layer.demand->plan, layer.rows->rows.as<std::byte>(),
              layer.pool->slot(0), layer.pool->layout.row_bytes);
  demand.record(*layer.fetched);
}

void DecodePath::gather_predictions(size_t layer_number) {
  LayerState& layer = state_.layers[layer_number];
  Stream& predict = *state_.predict;
  gather_rows(predict, "gather predictions", predicted_plan(layer_number), layer.rows->rows.as<std::byte>(),
              layer.pool->slot(0), layer.pool->layout.row_bytes);
  predict.record(*layer.forecast);
  predicted_any_ = true;
}

void DecodePath::run(Stream& compute, const MoeInput& input, float* y) {
  const auto number = static_cast<size_t>(input.layer);
  LayerState& layer = state_.layers[number];
  const int64_t n = input.routes.rows * input.routes.k;
  compute.copy("ids to ensure", state_.ids_scratch(), input.routes.ids,
               static_cast<size_t>(n) * sizeof(int32_t));
  slot_ops::ensure(compute, layer.pool->map.view(), layer.local, state_.ids_scratch(), n, layer.demand->plan);
  if (forecast_layer_ != 0 && forecast_layer_ == number) {
    count_forecast(compute, input.routes.ids, n, state_.shape.experts, forecast_of(number),
                   counters_.as<ForecastCounters>() + input.layer);
  }
  const bool ahead = wants_lookahead() && input.next_logits != nullptr;
  if (ahead) rank(side_ ? *side_ : compute, input);
  if (ahead && !side_) install(number + 1);
  compute.record(*layer.planned);
  gather_misses(layer);
  if (ahead && !side_) {
    state_.predict->wait(*layer.fetched);  // behind [planned] already
    gather_predictions(number + 1);
  }

  compute.wait(*layer.fetched);
  if (side_open_) join_side();
  if (ahead && side_) {
    install(number + 1);
    compute.record(*installed_);
    state_.predict->wait(*installed_);
    gather_predictions(number + 1);
  }
  expert_products(compute, input.x, input.routes, layer.view(layer.slot_of()), 0,
                  static_cast<int32_t>(state_.shape.experts), input.activations, input.outputs);
  expert_sums(compute, input.outputs, input.routes, layer.rows->layout.hidden, y);
}

void DecodePath::end_step() {
  if (side_open_) join_side();  // of a step that was given up
  if (predicted_any_) {
    // The demand of each layer was joined by its products; what was predicted last may be under way.
    for (LayerState& layer : state_.layers) state_.compute.wait(*layer.forecast);
  }
  predicted_any_ = false;
  forecast_layer_ = 0;
}

}  // namespace sluice
