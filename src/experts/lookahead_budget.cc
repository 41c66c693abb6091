// The controller's arithmetic; it holds no clock of its own.
#include "experts/lookahead_budget.h"

#include <algorithm>
#include <cmath>

#include "base/median.h"

namespace sluice {
namespace {

constexpr size_t kTrialWindows = 2;      // of each kind
constexpr int kLongestPause = 256;       // windows
constexpr double kRankWorthwhile = 0.1;  // wanted that often
constexpr double kClearly = 0.99;        // with / without, to change "off" into "on"

}  // namespace

LookaheadBudget::LookaheadBudget(const ExpertShape& shape, double row_ms)
    : shape_(shape),
      row_ms_(row_ms),
      useful_ranks_(static_cast<int32_t>(std::min(2 * shape.top_k, shape.experts))) {
  budget_ = std::min(budget_, useful_ranks_);
}

void LookaheadBudget::add(const StepSample& sample) {
  window_.push_back(sample);
  if (static_cast<int>(window_.size()) == kWindow) end_window();
}

void LookaheadBudget::end_window() {
  if (in_trial_) {
    std::vector<double>& times = trying_without_ ? without_ms_ : with_ms_;
    for (const StepSample& sample : window_) times.push_back(sample.ms);
    if (trying_without_) {
      std::vector<double> compute;
      for (const StepSample& sample : window_) {
        compute.push_back(sample.ms - static_cast<double>(sample.demand_rows) * row_ms_);
      }
      compute_ms_ = std::max(0.0, median(std::move(compute)));
      choose_budget();
    }
    trying_without_ = !trying_without_;
    if (without_ms_.size() == kTrialWindows * kWindow) end_trial();
  } else if (--pause_left_ <= 0) {
    in_trial_ = true;
    trying_without_ = false;
  }
  window_.clear();
}

void LookaheadBudget::end_trial() {
  const double with = median(with_ms_), without = median(without_ms_);
  const bool pays = with < (pays_ ? without : kClearly * without);
  pause_ = pays == pays_ ? std::min(2 * pause_, kLongestPause) : 16;
  pays_ = pays;
  pause_left_ = pause_;
  in_trial_ = false;
  trying_without_ = !pays;
  with_ms_.clear();
  without_ms_.clear();
}

void LookaheadBudget::choose_budget() {
  if (row_ms_ <= 0) return;
  const double free_rows = compute_ms_ / static_cast<double>(shape_.layers) / row_ms_;
  budget_ = std::clamp(static_cast<int32_t>(std::min(std::floor(free_rows), 1e6)), int32_t{1}, useful_ranks_);
}

void LookaheadBudget::learn_ranks(std::span<const double> wanted) {
  if (wanted.empty()) return;
  int32_t useful = 0;
  while (useful < static_cast<int32_t>(wanted.size()) &&
         wanted[static_cast<size_t>(useful)] >= kRankWorthwhile) {
    ++useful;
  }
  useful_ranks_ =
      std::clamp(useful, int32_t{1}, static_cast<int32_t>(std::min(2 * shape_.top_k, shape_.experts)));
  budget_ = std::min(budget_, useful_ranks_);
}

}  // namespace sluice
