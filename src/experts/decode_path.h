// Decode: one `ensure` a layer, a gather of its misses, and predictions for the next layer behind it.
#pragma once

#include "experts/arrivals.h"
#include "experts/expert_state.h"
#include "experts/forecast.h"
#include "experts/lookahead_budget.h"

namespace sluice {

/// The path of decode steps and of prompts so short that all of their experts fit beside each other.
///
/// Order of one layer l (every arrow is a fence; a test takes each one out):
///   compute: ensure(l), install predictions(l + 1) -> [planned l] -> demand: gather misses(l)
///   predict: gather predictions(l) -> [forecast l] -> demand: gather misses(l)
///   demand: gather misses(l) -> [fetched l] -> compute: products(l)
///   demand: gather misses(l) -> [fetched l] -> predict: gather predictions(l + 1)
/// The demand of l waits for the predictions of l, since a hit may lie in a slot whose bytes are still under
/// way; and the predictions of l + 1 wait for the demand of l: demand outranks speculation.
///
/// That is the stacked form, where the next router's logits come with this layer's. In the side form they
/// come on a stream of their own. Only product and ranking leave the compute stream, never a write to the
/// map:
///   compute: input of l -> [forked] -> side: router of l + 1, ranking -> [ranked] -> compute, behind
///   [fetched l]: install predictions(l + 1) -> [installed] -> predict: gather predictions(l + 1)
///
/// With the CPU (ExpertState::cpu_rule) a part of the misses gets no slot: compute posts them to the workers
/// behind ensure(l), and takes their outputs behind products(l), which have left them out.
class DecodePath final : public MoeExecutor {
 public:
  explicit DecodePath(ExpertState& state);

  bool wants_lookahead() const override { return state_.settings.lookahead != LookaheadMode::kOff && ahead_; }
  Stream& fork_lookahead(Stream& compute) override;
  void run(Stream& compute, const MoeInput& input, float* y) override;

  /// From now on the budget of predictions follows what steps take; `row_ms` is an expert over the link. Only
  /// where settings leave it open.
  void adapt_budget(double row_ms);
  /// Starts a step. Without `lookahead` nothing is predicted (a short prompt). `timed`: what the step takes
  /// is its own, nothing else runs between its layers.
  void begin_step(bool lookahead, bool timed = false);
  /// Joins every stream that writes slots into the compute stream: the last of a step's operations.
  void join();
  /// After join(), or in place of a step's operations that ran as a graph.
  void end_step();
  /// The same for a step that an error ended.
  void give_up_step();
  /// At the end of a step: queues what learn() reads once the host has waited for it.
  void queue_sample();
  void learn();
  /// The budget of the next step, a layer.
  int32_t most_predictions() const { return most_; }

  /// How good the forecasts were, of every layer, in device memory. Layer 0 has none.
  const ForecastCounters* forecast_counters() const { return counters_.as<ForecastCounters>(); }
  const ArrivalMeter& arrivals() const { return arrivals_; }

 private:
  void rank(Stream& stream, const MoeInput& input);
  void install(size_t layer);
  void ensure(Stream& compute, LayerState& layer, const MoeInput& input);
  void gather_misses(LayerState& layer, int64_t most);
  void gather_predictions(size_t layer, const Event& installed);
  void join_side();
  void set_budget(int32_t most);
  int32_t* forecast_of(size_t layer) const {
    return predicted_ids_.as<int32_t>() + static_cast<int64_t>(layer) * state_.shape.experts;
  }
  const OwnedPlan& predicted_plan(size_t layer) const;

  ExpertState& state_;
  Buffer predicted_ids_;  // [L, experts]: the forecast of each layer
  Buffer counters_;       // [L]
  Buffer budget_;         // [1]: most predictions a layer and step
  ArrivalMeter arrivals_;
  bool ahead_ = true;
  bool predicted_any_ = false;
  std::unique_ptr<LookaheadBudget> adaptive_;
  double step_start_us_ = -1;     // of a timed step
  bool counters_follow_ = false;  // nothing but timed steps since demand_seen_
  bool sampled_ = false, ranks_sampled_ = false;
  int32_t most_ = 0;
  int64_t demand_seen_ = 0;                             // rows, when learn() last ran
  std::vector<HostArray<LayerCounters>> counters_now_;  // of each pool
  HostArray<ForecastCounters> forecasts_now_;
  std::unique_ptr<Stream> side_;  // null in the stacked form
  std::unique_ptr<Event> forked_, ranked_, installed_;
  bool side_open_ = false;     // forked and not joined
  size_t forecast_layer_ = 0;  // the layer that this step has a forecast for; 0: none
};

}  // namespace sluice
