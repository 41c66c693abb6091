// Rules and times of forwards with the CPU.
#include "experts/cpu_control.h"

#include <algorithm>

#include "experts/pass_cost.h"

namespace sluice {
namespace {

constexpr double kNewestPass = 0.5;  // weight in the moving average

double milliseconds(int64_t ns) { return static_cast<double>(ns) / 1e6; }

double mean_row_bytes(const ExpertState& state) {
  double bytes = 0;
  for (const LayerState& layer : state.layers) bytes += static_cast<double>(layer.rows->layout.row_bytes);
  return bytes / static_cast<double>(state.layers.size());
}

}  // namespace

CpuControl::CpuControl(ExpertState& state, double link_bytes_per_ms) : state_(state) {
  if (state.cpu == nullptr) return;
  pair_ms_ = state.cpu->measure_ms();
  if (state.settings.cpu.mode == CpuMode::kAuto) {
    share_.emplace(mean_row_bytes(state) / link_bytes_per_ms, pair_ms_);
  }
}

// Workers that did not answer are given nothing until they have.
bool CpuControl::ready() {
  state_.cpu_rule.reset();
  if (state_.cpu == nullptr || silent()) return false;
  silent_ = false;
  return true;
}

void CpuControl::begin_decode(bool alone) {
  measuring_ = false;
  if (!ready()) return;
  state_.cpu_rule = share_ ? share_->next_step() : FetchRule::at_most(state_.settings.cpu.fetch_cap);
  if (state_.cpu_rule) state_.cpu->begin_step();
  measuring_ = share_ && alone;
  start_us_ = state_.device.now_us();
}

void CpuControl::begin_prompt(int64_t rows, double spread) {
  if (!ready()) return;
  const double rows_per_expert =
      static_cast<double>(rows * state_.shape.top_k) / distinct_experts(state_.shape, spread, rows);
  state_.cpu_rule =
      share_ ? share_->prompt(rows_per_expert) : FetchRule::at_most(state_.settings.cpu.fetch_cap);
  if (state_.cpu_rule) state_.cpu->begin_step();
}

CpuRate CpuControl::pass_rate() const {
  // The published form without hits shares one table of slots among all passes.
  if (state_.cpu == nullptr || silent() || state_.settings.compare.hits == HitMode::kOff) return {};
  return {pair_ms_, state_.settings.cpu.mode == CpuMode::kAlways};
}

void CpuControl::begin_pass() {
  if (!ready()) return;
  in_pass_ = true;
  state_.cpu->begin_step();
}

void CpuControl::note_pass(const CpuPassSample& pass, const PassRates& rates) {
  if (share_) passes_.note(pass, rates);
}

void CpuControl::end_forward(bool measured) { step_ended_ = measuring_ && measured; }

void CpuControl::drop_untaken() {
  if (state_.cpu != nullptr && !state_.settings.mutations.keep_untaken_call) state_.cpu->drop(state_.compute);
}

void CpuControl::rest() {
  state_.cpu_rule.reset();
  if (state_.cpu != nullptr) state_.cpu->end_step();
}

StepTimes CpuControl::take_times() {
  const CpuTotals cpu = state_.cpu->totals();
  const LinkTotals link = state_.link_meter != nullptr ? state_.link_meter->totals() : LinkTotals();
  StepTimes times;
  times.step = (state_.device.now_us() - start_us_) / 1000;
  times.link = milliseconds(link.busy_ns - seen_link_.busy_ns);
  times.cpu = milliseconds(cpu.busy_ns - seen_cpu_.busy_ns);
  times.fetched = link.rows - seen_link_.rows;
  times.computed = cpu.experts - seen_cpu_.experts;
  times.rows_computed = cpu.rows - seen_cpu_.rows;
  seen_cpu_ = cpu;
  seen_link_ = link;
  return times;
}

void CpuControl::after_wait(bool failed) {
  if (state_.cpu == nullptr) return;
  if (failed && !state_.cpu->answered()) {
    silent_ = true;
    ++silences_;
  }
  const StepTimes times = take_times();
  if (share_ && step_ended_ && !failed) share_->note(times);
  if (in_pass_ && times.rows_computed > 0) {
    pair_ms_ += kNewestPass * (times.cpu / static_cast<double>(times.rows_computed) - pair_ms_);
  }
  step_ended_ = measuring_ = in_pass_ = false;
}

CpuReport CpuControl::report() {
  if (state_.cpu == nullptr) return {};
  CpuReport report{
      state_.settings.cpu.mode, state_.cpu->threads(), state_.cpu->totals(), silences_, {}, {}, 0};
  if (share_) {
    report.verdict = share_->describe();
    report.passes = passes_.describe();
    report.fraction = share_->state() == CpuShare::State::kOff ? 1 : share_->fraction();
  }
  return report;
}

}  // namespace sluice
