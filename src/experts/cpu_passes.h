// Whether the CPU takes part in streaming passes, by comparing passes with and without it.
//
// How much it would do follows from rates (pass_cost.h). Passes differ in length and in what is resident, so
// what is compared is each pass's time over what its bytes and tokens take without the CPU, by the rates that
// are known at the verdict.
// - A *trial* lets passes go without and with the CPU in turn, three each. The CPU goes *on* where its median
//   is less than 0.97 of the other; a first pair above 1.2 ends the trial.
// - While it is *on*, each eighth pass goes without it, and the last three of both arms are compared again.
// - While it is *off*, the next trial comes after 16 passes, then after twice as many each time, at most 256.
// Only passes that could gain are asked about: where the link is not the limit nothing is tried.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "experts/pass_cost.h"

namespace sluice {

/// A streaming pass that could gain from the CPU.
struct CpuPassSample {
  bool with_cpu = false;
  int64_t rows = 0;
  double bytes = 0;  // of all misses, wherever they were computed
  double ms = 0;
};

class CpuPasses {
 public:
  enum class State { kTrial, kOn, kOff };

  /// Whether the next pass that could gain goes with the CPU.
  bool next_with() const;
  /// What it took.
  void note(const CpuPassSample& pass, const PassRates& rates);

  State state() const { return state_; }
  /// Of the last verdict, 0 before: times with the CPU over times without it.
  double ratio() const { return ratio_; }
  /// "on, a pass took 0.71 of its time without the CPU", "left out: no pass would have gained".
  std::string describe() const;

 private:
  static constexpr size_t kPairs = 3;
  static constexpr int64_t kCheckEvery = 8, kFirstPause = 16, kLongestPause = 256;

  void judge(const PassRates& rates);
  void go_off();

  State state_ = State::kTrial;
  std::array<std::vector<CpuPassSample>, 2> arms_;  // the latest without and with, at most kPairs each
  double ratio_ = 0;
  int64_t passes_ = 0;                            // since the last check, or since it went off
  int64_t pause_ = 0, next_pause_ = kFirstPause;  // off: passes until the next trial
};

}  // namespace sluice
