// How many experts a layer may fetch ahead of its turn: learnt from the steps of this machine.
//
// Two questions, answered separately:
// - How many fit? What crosses the link while a layer computes is free. Steps without predictions tell how
// long
//   a layer computes: their time less that of their demand. And a rank of the forecast that is hardly ever
//   wanted is not worth its slot.
// - Does it pay at all? Windows of steps with and without predictions take turns, and their median times are
//   compared: first 2 of each, then, as long as the answer stays the same, after ever longer pauses. Where
//   steps with predictions are not quicker, the budget is 0 until the next trial.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experts/settings.h"

namespace sluice {

/// What one decode step took and moved, over all layers.
struct StepSample {
  double ms = 0;
  int64_t demand_rows = 0;  // experts fetched while their layer waited
};

class LookaheadBudget {
 public:
  static constexpr int32_t kFirstGuess = 4;  // published: decode +22 % with 4
  static constexpr int kWindow = 16;         // steps

  /// `row_ms`: an expert over the link.
  LookaheadBudget(const ExpertShape& shape, double row_ms);

  /// Most predictions a layer in the next step.
  int32_t now() const { return trying_without_ ? 0 : budget_; }
  /// Whether the next sample ends a window; worth calling learn_ranks() then.
  bool ends_window() const { return static_cast<int>(window_.size()) + 1 == kWindow; }
  void add(const StepSample& sample);
  /// How often the expert at each rank of a forecast was wanted, 0 to 1.
  void learn_ranks(std::span<const double> wanted);

  /// Whether the last trial found that predictions pay (true before there was one).
  bool pays() const { return pays_; }

 private:
  void end_window();
  void end_trial();
  void choose_budget();

  const ExpertShape shape_;
  const double row_ms_;
  int32_t budget_ = kFirstGuess, useful_ranks_;
  bool pays_ = true, trying_without_ = false;
  std::vector<StepSample> window_;
  // A trial: windows with, without, with, without. Between trials windows only pass.
  std::vector<double> with_ms_, without_ms_;
  double compute_ms_ = 0;  // of a step, without its demand; 0: not known
  bool in_trial_ = true;
  int pause_ = 16, pause_left_ = 0;  // windows
};

}  // namespace sluice
