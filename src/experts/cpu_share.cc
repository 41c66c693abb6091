// Trials, checks and rates; the algorithm is on top of the header.
#include "experts/cpu_share.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "base/median.h"

namespace sluice {
namespace {

constexpr double kWins = 0.97, kLosesAtOnce = 1.2;  // with the CPU / without
constexpr double kLeastSaving = 0.02;               // of a step, to be worth a trial
constexpr double kOtherRate = 1.5;                  // a rate that calls for a new trial
constexpr double kNewest = 0.2;                     // weight of the newest value in a moving average

void average_in(double& average, double value, double weight = kNewest) {
  average = average == 0 ? value : (1 - weight) * average + weight * value;
}

}  // namespace

CpuShare::CpuShare(double link_ms_per_expert, double cpu_ms_per_expert)
    : link_ms_(link_ms_per_expert), cpu_ms_(cpu_ms_per_expert) {
  SLUICE_CHECK(link_ms_ > 0 && cpu_ms_ > 0);
  start_trial();
}

bool CpuShare::with_cpu() const {
  switch (state_) {
    case State::kTrial:
      return arms_[0].size() > arms_[1].size();  // without, with, without, with ...
    case State::kOn:
      return waited_ < kCheckEvery;
    case State::kOff:
      return false;
  }
  return false;
}

std::optional<FetchRule> CpuShare::next_step() const {
  if (!with_cpu()) return std::nullopt;
  return FetchRule::fraction(fraction());
}

std::optional<FetchRule> CpuShare::prompt(double rows_per_expert) const {
  if (state_ != State::kOn) return std::nullopt;
  return FetchRule::fraction(share(cpu_ms_ * std::max(1.0, rows_per_expert)));
}

void CpuShare::learn(const StepTimes& times) {
  if (times.fetched > 0 && times.link > 0) {
    average_in(link_ms_, times.link / static_cast<double>(times.fetched));
  }
  if (times.computed > 0 && times.cpu > 0) {
    average_in(cpu_ms_, times.cpu / static_cast<double>(times.computed));
  }
  if (!with_cpu()) {
    average_in(step_ms_, times.step);
    average_in(missed_, static_cast<double>(times.fetched));
  }
}

void CpuShare::note(const StepTimes& times) {
  learn(times);
  steps_with_ += with_cpu();
  if (state_ == State::kOff) {
    ++waited_;
    const double change = link_ms_ / verdict_link_ms_;
    const bool other_rate = change > kOtherRate || change < 1 / kOtherRate;
    const bool due = waited_ >= (other_rate ? pause_ / 4 : pause_);
    // At the longest pause the guess of what it would save is stale as well.
    if ((due && worth_a_trial()) || waited_ >= kLongestPause) start_trial();
    return;
  }
  block_.push_back(times.step);
  const bool check = state_ == State::kOn && waited_ >= kCheckEvery;
  if (state_ == State::kOn && !check) ++waited_;
  if (block_.size() < kBlock) return;
  const double ms = median({block_.begin() + kSettle, block_.end()});
  block_.clear();
  if (state_ == State::kTrial) {
    end_trial_block(ms);
  } else if (check) {
    end_check(ms);
  } else {
    last_with_ = ms;
  }
}

void CpuShare::start_trial() {
  state_ = State::kTrial;
  ++trials_;
  block_.clear();
  for (auto& arm : arms_) arm.clear();
}

void CpuShare::end_trial_block(double ms) {
  arms_[with_cpu() ? 1 : 0].push_back(ms);
  const auto& [without, with] = arms_;
  if (with.size() < without.size()) return;
  const bool lost = with.size() == 1 && with[0] > kLosesAtOnce * without[0];
  if (!lost && with.size() < kPairs) return;
  with_ms_ = median(with);
  without_ms_ = median(without);
  ratio_ = with_ms_ / without_ms_;
  if (!(ratio_ < kWins)) return go_off();  // a clock that stands still gives no number
  state_ = State::kOn;
  last_with_ = with_ms_;
  pause_ = kFirstPause;
  waited_ = 0;
}

void CpuShare::end_check(double without) {
  with_ms_ = last_with_;
  without_ms_ = without;
  average_in(ratio_, with_ms_ / without_ms_, 0.5);
  waited_ = 0;
  if (!(ratio_ < 1)) go_off();
}

void CpuShare::go_off() {
  const bool again = state_ == State::kTrial && verdict_link_ms_ > 0;
  pause_ = again ? std::min<int64_t>(2 * pause_, kLongestPause) : kFirstPause;
  state_ = State::kOff;
  waited_ = 0;
  verdict_link_ms_ = link_ms_;
  block_.clear();
}

// Without the CPU the misses take missed * link_ms_; with it, both sides that times fraction().
bool CpuShare::worth_a_trial() const {
  return missed_ * link_ms_ * (1 - fraction()) >= kLeastSaving * step_ms_;
}

std::string CpuShare::describe() const {
  if (with_ms_ == 0) return "measuring";
  char text[160];
  std::snprintf(text, sizeof text,
                "%s, %.0f %% of the misses cross the link; a step took %.2f ms, without the CPU %.2f ms",
                state_ == State::kOn    ? "on"
                : state_ == State::kOff ? "off"
                                        : "measuring again",
                100 * (state_ == State::kOff ? 1 : fraction()), with_ms_, without_ms_);
  return text;
}

}  // namespace sluice
