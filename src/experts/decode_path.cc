// The operations of a decode step's MoE layers.
#include "experts/decode_path.h"

#include <algorithm>
#include <utility>

#include "experts/cuda/expert_ops.h"
#include "experts/forecast.h"
#include "experts/gather.h"
#include "experts/slot_ops.h"

namespace sluice {
namespace {

int64_t fetched(const std::vector<HostArray<LayerCounters>>& pools) {
  int64_t sum = 0;
  for (const auto& layers : pools) {
    for (const LayerCounters& layer : layers.all()) sum += static_cast<int64_t>(layer.fetched);
  }
  return sum;
}

}  // namespace

DecodePath::DecodePath(ExpertState& state)
    : state_(state),
      predicted_ids_(state.device.allocate_array<int32_t>(
          static_cast<int64_t>(state.layers.size()) * state.shape.experts, "forecasts")),
      counters_(state.device.allocate_array<ForecastCounters>(static_cast<int64_t>(state.layers.size()),
                                                              "forecasts")),
      budget_(state.device.allocate_array<int32_t>(1, "prediction budget")),
      arrivals_(state) {
  if (state.settings.compare.side_lookahead && state.settings.lookahead != LookaheadMode::kOff) {
    side_ = state.device.make_stream("side", Priority::kNormal);
    forked_ = state.device.make_event("forked");
    ranked_ = state.device.make_event("ranked");
    installed_ = state.device.make_event("installed");
  }
  const auto wish = static_cast<int32_t>(state.settings.lookahead_budget);
  const int32_t budget =
      state.settings.lookahead == LookaheadMode::kOn ? (wish > 0 ? wish : LookaheadBudget::kFirstGuess) : 0;
  set_budget(budget);
  auto* counters = counters_.as<ForecastCounters>();
  const auto n = static_cast<int64_t>(state.layers.size());
  state.compute.launch_both(
      {.name = "reset forecasts", .writes = {range_of(counters, n)}},
      [=](const HostContext&) { std::fill(counters, counters + n, ForecastCounters()); },
      SLUICE_CUDA_OP(cuda::zero, counters, static_cast<size_t>(n) * sizeof(ForecastCounters)));
}

void DecodePath::set_budget(int32_t most) {
  most_ = most;
  int32_t* target = budget_.as<int32_t>();
  state_.compute.launch_both(
      {.name = "set budget", .writes = {range_of(target, 1)}}, [=](const HostContext&) { *target = most; },
      SLUICE_CUDA_OP(cuda::fill_i32, target, 1, most));
}

void DecodePath::adapt_budget(double row_ms) {
  if (state_.settings.lookahead != LookaheadMode::kOn || state_.settings.lookahead_budget > 0) return;
  adaptive_ = std::make_unique<LookaheadBudget>(state_.shape, row_ms);
  for (const auto& pool : state_.pools) {
    counters_now_.emplace_back(state_.device, pool->layers.size(), "step counters");
  }
  forecasts_now_ = HostArray<ForecastCounters>(state_.device, state_.layers.size(), "step forecasts");
  set_budget(adaptive_->now());
}

void DecodePath::begin_step(bool lookahead, bool timed) {
  ahead_ = lookahead;
  step_start_us_ = timed && adaptive_ ? state_.device.now_us() : -1;
  if (!timed) counters_follow_ = false;
}

void DecodePath::queue_sample() {
  arrivals_.queue_sample();
  if (step_start_us_ < 0) return;
  for (size_t p = 0; p < state_.pools.size(); ++p) {
    state_.compute.copy("step counters", counters_now_[p].data(), state_.pools[p]->map.view().counters,
                        counters_now_[p].bytes());
  }
  ranks_sampled_ = adaptive_->ends_window();
  if (ranks_sampled_) {
    state_.compute.copy("step forecasts", forecasts_now_.data(), counters_.data(), forecasts_now_.bytes());
  }
  sampled_ = true;
}

void DecodePath::learn() {
  arrivals_.learn();
  if (!sampled_) return;
  sampled_ = false;
  StepSample sample;
  sample.ms = (state_.device.now_us() - step_start_us_) / 1000;
  const int64_t demand = fetched(counters_now_);
  sample.demand_rows = demand - demand_seen_;
  demand_seen_ = demand;
  step_start_us_ = -1;
  if (!std::exchange(counters_follow_, true)) return;  // others have counted since the last sample
  if (ranks_sampled_) adaptive_->learn_ranks(wanted_by_rank(forecasts_now_.all()));
  adaptive_->add(sample);
  if (adaptive_->now() != most_) set_budget(adaptive_->now());
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
                                state_.shape.experts, budget_.as<int32_t>(),
                                predicted_plan(layer_number).plan);
  if (&writer == &state_.compute)
    state_.note(SlotWrite::kPrediction, layer, predicted_plan(layer_number).plan);
}

const OwnedPlan& DecodePath::predicted_plan(size_t layer) const {
  return *state_.layers[state_.settings.mutations.one_predicted_plan ? 0 : layer].predicted;
}

void DecodePath::ensure(Stream& compute, LayerState& layer, const MoeInput& input) {
  const SlotMapView& map = layer.pool->map.view();
  const int64_t n = input.routes.rows * input.routes.k;
  compute.copy("ids to ensure", state_.ids_scratch(), input.routes.ids,
               static_cast<size_t>(n) * sizeof(int32_t));
  if (!state_.cpu_rule) {
    slot_ops::ensure(compute, map, layer.local, state_.ids_scratch(), n, layer.demand->plan);
    return;
  }
  slot_ops::ensure_capped(compute, map, layer.local, state_.ids_scratch(), n, *state_.cpu_rule,
                          state_.cpu_ids_scratch(), layer.demand->plan);
  state_.cpu->post(compute, input, state_.cpu_ids_scratch());
}

void DecodePath::gather_misses(LayerState& layer, int64_t most) {
  Stream& demand = *state_.demand;
  demand.wait(*layer.planned);
  demand.wait(*layer.forecast);
  LinkMeter* meter = state_.link_meter.get();
  if (meter != nullptr) meter->start(demand);
  state_.gather(demand, "gather misses", layer, *layer.demand, *layer.planned, most);
  if (meter != nullptr) meter->stop(demand, layer.demand->plan);
  demand.record(*layer.fetched);
}

void DecodePath::gather_predictions(size_t layer_number, const Event& installed) {
  LayerState& layer = state_.layers[layer_number];
  Stream& predict = *state_.predict;
  state_.gather(predict, "gather predictions", layer, predicted_plan(layer_number), installed, most_);
  predict.record(*layer.forecast);
  predicted_any_ = true;
}

void DecodePath::run(Stream& compute, const MoeInput& input, float* y) {
  const auto number = static_cast<size_t>(input.layer);
  LayerState& layer = state_.layers[number];
  const int64_t n = input.routes.rows * input.routes.k;
  ensure(compute, layer, input);
  state_.note(SlotWrite::kDemand, layer, layer.demand->plan);
  if (forecast_layer_ != 0 && forecast_layer_ == number) {
    count_forecast(compute, input.routes.ids, n, state_.shape.experts, forecast_of(number),
                   counters_.as<ForecastCounters>() + input.layer);
    if (most_ > 0) {
      count_arrivals(compute, input.routes.ids, n, predicted_plan(number).plan, layer.demand->plan,
                     arrivals_.counters() + input.layer);
    }
  }
  const bool ahead = wants_lookahead() && input.next_logits != nullptr;
  if (ahead) rank(side_ ? *side_ : compute, input);
  if (ahead && !side_) install(number + 1);
  compute.record(*layer.planned);
  gather_misses(layer, n);
  if (ahead && !side_) {
    state_.predict->wait(*layer.fetched);  // behind [planned] already
    gather_predictions(number + 1, *layer.planned);
  }

  run_beside(compute, input);
  compute.wait(*layer.fetched);
  if (side_open_) join_side();
  if (ahead && side_) {
    install(number + 1);
    compute.record(*installed_);
    state_.predict->wait(*installed_);
    gather_predictions(number + 1, *installed_);
  }
  expert_products(compute, input.x, input.routes, layer.view(layer.slot_of()), 0,
                  static_cast<int32_t>(state_.shape.experts), input.activations, input.outputs);
  if (state_.cpu_rule) state_.cpu->take(compute, input, state_.cpu_ids_scratch());
  expert_sums(compute, input.outputs, input.routes, layer.rows->layout.hidden, y);
}

void DecodePath::join() {
  if (side_open_) join_side();  // of a step that was given up
  if (!predicted_any_) return;
  // The demand of each layer was joined by its products; what was predicted last may be under way.
  for (LayerState& layer : state_.layers) state_.compute.wait(*layer.forecast);
}

void DecodePath::end_step() {
  if (predicted_any_) arrivals_.note_step(true);
  predicted_any_ = false;
  forecast_layer_ = 0;
  ahead_ = false;  // a short prompt may go on through the same path
}

void DecodePath::give_up_step() {
  join();
  if (predicted_any_) arrivals_.note_step(false);
  predicted_any_ = false;
  forecast_layer_ = 0;
  ahead_ = false;
  step_start_us_ = -1;
}

}  // namespace sluice
