// Which share of a layer's missing experts crosses the link, and whether the CPU takes part at all.
//
// The share follows from two rates, each a moving average of what was measured while both sides worked: with
// a ms a fetched expert and c ms an expert on the CPU, both finish together where c / (a + c) of the misses
// are fetched. Whether that pays is not left to the model; decode steps are compared:
// - A *trial* runs blocks of 8 steps, three without the CPU and three with it in turn. The first two steps of
// a block settle and do not count; a block's time is the median of the others, an arm's time the median of
// its blocks. The CPU goes *on* where its arm takes less than 0.97 of the other; a first block that takes
// more than 1.2 ends the trial.
// - While it is *on*, each 128 steps one block without it is compared with the block before. It goes *off*
// once the moving average of these ratios says that it does not save anything.
// - While it is *off*, the next trial comes after 256 steps, then after twice as many each time, at most
// 4096. It comes at once where a rate has changed by half, and is put off as long as the rates promise to
// save less than 2 %. What it costs where it never pays: at most 24 steps of the first 280, later at most 24
// of 4120; and each of them is as long as the longer of its two sides. Where it pays, 8 steps of 136 go
// without it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experts/fetch_rule.h"

namespace sluice {

/// What one decode step took. Times in milliseconds.
struct StepTimes {
  double step = 0;
  double link = 0, cpu = 0;            // the demand gathers; the workers
  uint64_t fetched = 0, computed = 0;  // experts
  uint64_t rows_computed = 0;          // (row, rank) pairs of the computed ones
};

class CpuShare {
 public:
  enum class State { kTrial, kOn, kOff };

  /// Starts with a trial. Both rates are first guesses, > 0.
  CpuShare(double link_ms_per_expert, double cpu_ms_per_expert);

  /// The rule of the next decode step; empty: all that is missing is fetched.
  std::optional<FetchRule> next_step() const;
  /// What that step took.
  void note(const StepTimes& times);
  /// The rule of a prompt whose experts have `rows_per_expert` rows each: only where decode has found the CPU
  /// worth it.
  std::optional<FetchRule> prompt(double rows_per_expert) const;

  State state() const { return state_; }
  double fraction() const { return share(cpu_ms_); }  // of the misses, those to fetch
  double link_ms_per_expert() const { return link_ms_; }
  double cpu_ms_per_expert() const { return cpu_ms_; }
  /// Of the last trial or check, 0 before: a step with the CPU and without it.
  double with_ms() const { return with_ms_; }
  double without_ms() const { return without_ms_; }
  uint64_t steps_with() const { return steps_with_; }
  uint64_t trials() const { return trials_; }
  /// "on, 42 % of the misses cross the link; a step took 3.10 ms, without the CPU 5.00 ms".
  std::string describe() const;

 private:
  static constexpr int kBlock = 8, kSettle = 2, kPairs = 3;
  static constexpr int kCheckEvery = 128, kFirstPause = 256, kLongestPause = 4096;

  double share(double cpu_ms) const { return cpu_ms / (link_ms_ + cpu_ms); }
  bool with_cpu() const;
  void learn(const StepTimes& times);
  void end_trial_block(double ms);
  void end_check(double without);
  void start_trial();
  void go_off();
  bool worth_a_trial() const;

  State state_ = State::kTrial;
  double link_ms_, cpu_ms_;          // of one expert
  double step_ms_ = 0, missed_ = 0;  // of steps without the CPU: time, misses
  double with_ms_ = 0, without_ms_ = 0, ratio_ = 1;
  std::vector<double> block_;                 // step times of the running block
  std::array<std::vector<double>, 2> arms_;   // of the trial: block times without and with
  double last_with_ = 0;                      // on: the last whole block
  int64_t waited_ = 0, pause_ = kFirstPause;  // steps since the verdict, and until the next trial
  double verdict_link_ms_ = 0;
  uint64_t steps_with_ = 0, trials_ = 0;
};

}  // namespace sluice
