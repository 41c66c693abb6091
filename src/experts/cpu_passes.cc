// Trials and checks of passes; the rules are on top of the header.
#include "experts/cpu_passes.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/median.h"

namespace sluice {
namespace {

constexpr double kWins = 0.97, kLosesAtOnce = 1.2;

// Time over what the pass takes without the CPU.
double median_ratio(const std::vector<CpuPassSample>& arm, const PassRates& rates) {
  std::vector<double> ratios;
  for (const CpuPassSample& pass : arm) {
    ratios.push_back(pass.ms / streaming_ms(rates, pass.bytes, rates.compute_ms(pass.rows)));
  }
  return median(std::move(ratios));
}

}  // namespace

bool CpuPasses::next_with() const {
  switch (state_) {
    case State::kTrial:
      return arms_[0].size() > arms_[1].size();
    case State::kOn:
      return passes_ + 1 < kCheckEvery;
    case State::kOff:
      return false;
  }
  return false;
}

void CpuPasses::note(const CpuPassSample& pass, const PassRates& rates) {
  if (state_ == State::kOff) {
    if (++passes_ < pause_) return;
    state_ = State::kTrial;
    for (auto& arm : arms_) arm.clear();
    return;
  }
  auto& arm = arms_[pass.with_cpu ? 1 : 0];
  if (arm.size() == kPairs) arm.erase(arm.begin());
  arm.push_back(pass);
  const bool check = state_ == State::kOn && !pass.with_cpu;
  const bool pair = state_ == State::kTrial && arms_[0].size() == arms_[1].size();
  passes_ = check ? 0 : passes_ + 1;
  if (check || pair) judge(rates);
}

void CpuPasses::judge(const PassRates& rates) {
  ratio_ = median_ratio(arms_[1], rates) / median_ratio(arms_[0], rates);
  if (state_ == State::kOn) {
    if (!(ratio_ < 1)) go_off();
    return;
  }
  if (arms_[1].size() < kPairs) {
    if (ratio_ > kLosesAtOnce) go_off();
    return;
  }
  if (!(ratio_ < kWins)) return go_off();  // a clock that stands still gives no number
  state_ = State::kOn;
  next_pause_ = kFirstPause;
  passes_ = 0;
}

void CpuPasses::go_off() {
  pause_ = next_pause_;
  next_pause_ = std::min(2 * pause_, kLongestPause);
  state_ = State::kOff;
  passes_ = 0;
}

std::string CpuPasses::describe() const {
  if (arms_[0].empty() && arms_[1].empty() && ratio_ == 0) return "left out: no pass would have gained";
  if (ratio_ == 0) return "measuring";
  char text[96];
  std::snprintf(text, sizeof text, "%s, a pass took %.2f of its time without the CPU",
                state_ == State::kOn    ? "on"
                : state_ == State::kOff ? "off"
                                        : "measuring again",
                ratio_);
  return text;
}

}  // namespace sluice
