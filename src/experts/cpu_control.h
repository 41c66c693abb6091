// Decides for each forward what the CPU computes, and measures what came of it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "experts/cpu_passes.h"
#include "experts/cpu_share.h"
#include "experts/expert_state.h"

namespace sluice {

/// Experts on the CPU, over the executor's life.
struct CpuReport {
  CpuMode mode = CpuMode::kOff;
  int threads = 0;
  CpuTotals totals;
  uint64_t silences = 0;  // calls that the workers did not answer in time
  std::string verdict;    // kAuto: CpuShare::describe()
  std::string passes;     // kAuto: CpuPasses::describe()
  double fraction = 0;    // kAuto: of the misses, those that cross the link
};

/// Sets ExpertState::cpu_rule before a forward. Does nothing where the CPU is off.
class CpuControl {
 public:
  CpuControl(ExpertState& state, double link_bytes_per_ms);

  /// `alone`: no prompt is under way, so that the step's time says something.
  void begin_decode(bool alone);
  /// Whether steps with and without the CPU are being compared.
  bool in_trial() const { return share_ && share_->state() == CpuShare::State::kTrial; }
  /// `spread`: PassRates.
  void begin_prompt(int64_t rows, double spread);
  /// What the cost model may reckon with in the next streaming pass.
  CpuRate pass_rate() const;
  /// Whether such a pass, if its forecast gives the CPU a part, is to go with it.
  bool next_pass_with() const { return !share_ || passes_.next_with(); }
  /// A streaming pass begins in which the CPU has a part.
  void begin_pass();
  /// What a streaming pass took that had a part for the CPU in its forecast; `rates` are those of now.
  void note_pass(const CpuPassSample& pass, const PassRates& rates);
  /// Everything of the forward is queued; `measured`: it was a decode step that went well.
  void end_forward(bool measured);
  /// A forward is over, or was given up: see CpuExperts::drop.
  void drop_untaken();
  /// No forward is under way any more.
  void rest();
  /// After the host has waited: what the forward took. `failed`: it ended with an error.
  void after_wait(bool failed);
  CpuReport report();

 private:
  bool silent() const { return silent_ && !state_.cpu->answered(); }
  bool ready();
  StepTimes take_times();

  ExpertState& state_;
  std::optional<CpuShare> share_;  // kAuto
  CpuPasses passes_;               // kAuto
  double pair_ms_ = 0;             // one row of one expert in a streaming pass
  bool in_pass_ = false;           // the CPU had a part in the forward that was queued last
  double start_us_ = 0;
  bool measuring_ = false, step_ended_ = false;
  bool silent_ = false;  // the workers have not answered a call that failed
  uint64_t silences_ = 0;
  CpuTotals seen_cpu_;  // at the last look
  LinkTotals seen_link_;
};

}  // namespace sluice
