// Decode: one `ensure` a layer, a gather of its misses, and predictions for the next layer behind it.
#pragma once

#include "experts/expert_state.h"
#include "experts/forecast.h"

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
class DecodePath final : public MoeExecutor {
 public:
  explicit DecodePath(ExpertState& state);

  bool wants_lookahead() const override { return state_.settings.lookahead != LookaheadMode::kOff && ahead_; }
  Stream& fork_lookahead(Stream& compute) override;
  void run(Stream& compute, const MoeInput& input, float* y) override;

  /// Starts a step of `rows` tokens. Without `lookahead` nothing is predicted (a touched prompt).
  void begin_step(bool lookahead) { ahead_ = lookahead; }
  /// Joins every stream that writes slots into the compute stream.
  void end_step();

  /// How good the forecasts were, of every layer, in device memory. Layer 0 has none.
  const ForecastCounters* forecast_counters() const { return counters_.as<ForecastCounters>(); }

 private:
  void rank(Stream& stream, const MoeInput& input);
  void install(size_t layer);
  void gather_misses(LayerState& layer);
  void gather_predictions(size_t layer);
  void join_side();
  int32_t* forecast_of(size_t layer) const {
    return predicted_ids_.as<int32_t>() + static_cast<int64_t>(layer) * state_.shape.experts;
  }
  const CopyPlan& predicted_plan(size_t layer) const;

  ExpertState& state_;
  Buffer predicted_ids_;  // [L, experts]: the forecast of each layer
  Buffer counters_;       // [L]
  Buffer budget_;         // [1]: most predictions a layer and step
  bool ahead_ = true;
  bool predicted_any_ = false;
  std::unique_ptr<Stream> side_;  // null in the stacked form
  std::unique_ptr<Event> forked_, ranked_, installed_;
  bool side_open_ = false;     // forked and not joined
  size_t forecast_layer_ = 0;  // the layer that this step has a forecast for; 0: none
};

}  // namespace sluice
