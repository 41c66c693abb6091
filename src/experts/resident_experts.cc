// Choosing the way of a forward, and what is reported of it.
#include "experts/resident_experts.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "experts/pool_of.h"
#include "experts/slot_ops.h"

namespace sluice {
namespace {

constexpr int64_t kAdoptRows = 16;  // tokens whose experts a prompt leaves in the pool

std::string why_touched_does_not_fit(const ExpertState& state, int64_t rows) {
  int64_t half = state.shape.experts;
  for (const auto& pool : state.pools) half = std::min(half, pool->ring / 2);
  return "touched does not fit: " + std::to_string(rows) + " tokens may need " +
         std::to_string(std::min(rows * state.shape.top_k, state.shape.experts)) +
         " experts of a layer, and half of the ring holds " + std::to_string(half);
}

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

ResidentExperts::ResidentExperts(Device& device, Stream& compute, std::span<const LayerRows> rows,
                                 const ExpertShape& shape, const ExpertSettings& settings, int64_t max_rows)
    : state_(device, compute, rows, shape, settings, max_rows),
      decode_(state_),
      stream_(state_),
      touched_(state_),
      warm_(state_),
      current_(&decode_),
      learner_(device.overlaps_copies() && settings.compare.overlap),
      pass_from_(device.make_event("pass from")),
      pass_to_(device.make_event("pass to")),
      copy_from_(device.make_event("link from")),
      copy_to_(device.make_event("link to")),
      touched_counts_(device, state_.layers.size(), "touched counts"),
      audit_results_(device, state_.pools.size(), "audit"),
      audit_memory_(device.allocate(state_.pools.size() * sizeof(AuditResult), "audit")) {
  measure_link();
  cpu_.emplace(state_, learner_.rates().link_bytes_per_ms);
}

void ResidentExperts::measure_link() {
  // A few rows into slots that are still empty: enough to rank the ways, and refined by every pass.
  const LayerState& layer = state_.layers[0];
  const auto count = std::min<int64_t>({layer.pool->slots, layer.rows->experts, 32});
  const size_t bytes = static_cast<size_t>(count) * layer.pool->layout.row_bytes;
  const auto start = std::chrono::steady_clock::now();
  state_.copy->record(*copy_from_);
  const CopyEntry entry{layer.pool->slot(0), layer.rows->row(ExpertId(0)), bytes};
  state_.copy_rows(*state_.copy, "measure link", layer, {&entry, 1});
  state_.copy->record(*copy_to_);
  state_.device.wait(*state_.copy, "link measurement");
  const auto us = state_.device.elapsed_us(*copy_from_, *copy_to_);
  learner_.add_copy(static_cast<double>(bytes), us ? *us / 1000 : std::max(1e-3, milliseconds_since(start)));
  decode_.adapt_budget(static_cast<double>(layer.pool->layout.row_bytes) /
                       learner_.rates().link_bytes_per_ms);
}

void ResidentExperts::begin_decode(int64_t) {
  if (pass_ == &stream_ && !state_.settings.compare.epoch_invalidation &&
      !state_.settings.mutations.decode_in_any_pass) {
    throw Error(ErrorCode::kInvalidArgument,
                "a decode step between the layers of a streaming prompt needs epoch invalidation "
                "(--prefill-invalidate epoch)");
  }
  cpu_->begin_decode(pass_ == nullptr);
  // One question at a time: while the CPU is on trial, the budget of predictions stays as it is.
  decode_.begin_step(true, pass_ == nullptr && !cpu_->in_trial());
  decoding_ = true;
  current_ = &decode_;
  disturbed_ = disturbed_ || pass_ != nullptr;
}

void ResidentExperts::join_decode() { decode_.join(); }

void ResidentExperts::end_decode() {
  decode_.join();
  end_recorded_decode();
}

void ResidentExperts::end_recorded_decode() {
  decode_.end_step();
  decoding_ = false;
  current_ = pass_ != nullptr ? pass_ : &decode_;
  if (pass_ == nullptr) cpu_->rest();
  cpu_->end_forward(true);
  ++decode_steps_;
}

std::optional<ResidentExperts::StepKind> ResidentExperts::step_kind() const {
  // Host threads take part in these, and a pass has events of its own that a graph would leave out.
  if (state_.staged != nullptr || state_.cpu != nullptr || pass_ != nullptr) return std::nullopt;
  return StepKind{resizes_, decode_.most_predictions()};
}

void ResidentExperts::give_up_decode() {
  decode_.give_up_step();
  cpu_->drop_untaken();
  decoding_ = false;
  current_ = pass_ != nullptr ? pass_ : &decode_;
  if (pass_ == nullptr) cpu_->rest();
}

PassQuestion ResidentExperts::question(int64_t rows, int64_t chunk_rows) const {
  PassQuestion question;
  question.rows = rows;
  question.chunk_rows = chunk_rows;
  const ExpertState::Residents residents = state_.residents();
  question.resident_rows = residents.all;
  question.outside_region = residents.outside_region;
  question.listed = residents.listed;
  for (const LayerState& layer : state_.layers) question.row_bytes += layer.pool->layout.row_bytes;
  question.row_bytes /= state_.layers.size();
  const int64_t pass_rows = std::min(rows, chunk_rows);
  const int64_t most = std::min(pass_rows * state_.shape.top_k, state_.shape.experts);
  question.ensure_fits =
      pass_rows <= kAdoptRows && std::all_of(state_.pools.begin(), state_.pools.end(),
                                             [&](const auto& pool) { return most <= pool->slots; });
  question.touched_fits = touched_.fits(pass_rows);
  return question;
}

PassRates ResidentExperts::rates(bool with_cpu) const {
  PassRates rates = learner_.rates();
  if (with_cpu) rates.cpu = cpu_->pass_rate();
  return rates;
}

int64_t ResidentExperts::rows_together(int64_t rows, int64_t chunk_rows, int64_t most) const {
  const PrefillMode mode = state_.settings.prefill;
  const int64_t group = rows <= most ? rows : most / chunk_rows * chunk_rows;
  const bool allowed = mode == PrefillMode::kAuto || mode == PrefillMode::kLayerMajor;
  if (!allowed || group <= chunk_rows) return std::min(rows, chunk_rows);
  const bool wins =
      mode == PrefillMode::kLayerMajor ||
      layer_major_wins(state_.shape, rates(cpu_->next_pass_with()), question(group, chunk_rows));
  return wins ? group : chunk_rows;
}

PassForecast ResidentExperts::choose(const PassQuestion& question) {
  const PrefillMode mode =
      question.rows > question.chunk_rows ? PrefillMode::kLayerMajor : state_.settings.prefill;
  const bool with_cpu = cpu_->next_pass_with();
  const PassForecast choice = choose_way(mode, state_.shape, rates(with_cpu), question);
  const PassForecast could = with_cpu ? choice : forecast(choice.way, state_.shape, rates(true), question);
  cpu_could_ = could.cpu.part > 0;
  return choice;
}

void ResidentExperts::begin_prefill(int64_t rows, int64_t chunk_rows) {
  SLUICE_CHECK_MSG(pass_ == nullptr, "a prefill inside a prefill");
  if (unfinished_) finish_pass(false);
  const PassForecast choice = choose(question(rows, chunk_rows));
  record_ = {};
  record_.way = choice.way;
  record_.rows = rows;
  record_.chunks = (rows + chunk_rows - 1) / chunk_rows;
  record_.predicted_ms = choice.ms;
  if (choice.fell_back) record_.fallback = why_touched_does_not_fit(state_, rows);
  record_.predicted_bytes = pass_bytes_ = choice.bytes;
  disturbed_ = false;
  cpu_part_ = choice.cpu;
  absent_part_ = choice.absent_part;
  state_.compute.record(*pass_from_);
  pass_start_ = std::chrono::steady_clock::now();
  try {
    open_pass(choice.way, rows);
  } catch (...) {
    close_pass();
    throw;
  }
  current_ = pass_;
}

void ResidentExperts::open_pass(PassWay way, int64_t rows) {
  switch (way) {
    case PassWay::kEnsure:
      pass_ = &decode_;
      cpu_->begin_prompt(rows, learner_.rates().spread);
      decode_.begin_step(false);
      break;
    case PassWay::kTouched:
      pass_ = &touched_;
      ++uncounted_;
      cpu_->begin_prompt(rows, learner_.rates().spread);
      touched_.begin(kAdoptRows);
      break;
    case PassWay::kStream:
    case PassWay::kLayerMajor:
      pass_ = &stream_;
      // The published base, which does without hits, leaves nothing behind either.
      if (cpu_part_.part > 0) cpu_->begin_pass();
      stream_.begin(state_.settings.compare.hits == HitMode::kOff ? 0 : kAdoptRows, cpu_part_);
      record_.resident_rows = stream_.resident_rows();
      record_.cpu_experts = stream_.cpu_experts();
      break;
  }
}

void ResidentExperts::close_pass() {
  if (pass_ == &stream_) {
    stream_.end();
  } else if (pass_ == &touched_) {
    touched_.end();
  } else if (pass_ == &decode_) {
    decode_.join();
    decode_.end_step();
  }
  pass_ = nullptr;
  current_ = &decode_;
  cpu_->drop_untaken();
  cpu_->rest();
}

void ResidentExperts::give_up_prefill() { close_pass(); }

void ResidentExperts::end_prefill() {
  if (streams(record_.way)) {
    record_.streamed_bytes = stream_.streamed_bytes();
    pass_bytes_ = static_cast<double>(record_.streamed_bytes);
  }
  if (record_.way == PassWay::kTouched) {
    state_.compute.copy("touched counts", touched_counts_.data(), touched_.counters(),
                        touched_counts_.bytes());
  }
  close_pass();
  state_.compute.record(*pass_to_);
  unfinished_ = true;
}

double ResidentExperts::pass_ms() const {
  const auto us = state_.device.elapsed_us(*pass_from_, *pass_to_);
  return us ? *us / 1000 : milliseconds_since(pass_start_);
}

// What the device counted of a touched pass, which the host has waited for.
void ResidentExperts::read_touched_counts() {
  uint64_t distinct = 0, misses = 0, bytes = 0;
  for (size_t l = 0; l < state_.layers.size(); ++l) {
    const TransientCounters& layer = touched_counts_[l];
    distinct += layer.distinct;
    misses += layer.misses;
    bytes += (layer.misses - layer.cpu) * state_.layers[l].pool->layout.row_bytes;
  }
  const auto wanted = static_cast<double>(distinct - touched_distinct_);
  if (uncounted_ == 1 && wanted > 0) {  // else they are those of several passes
    pass_bytes_ = static_cast<double>(bytes - touched_bytes_);
    learner_.add_distinct(state_.shape, record_.rows, wanted / static_cast<double>(state_.shape.layers));
    learner_.add_absence(static_cast<double>(misses - touched_misses_) / wanted, absent_part_);
  }
  touched_distinct_ = distinct;
  touched_misses_ = misses;
  touched_bytes_ = bytes;
  uncounted_ = 0;
}

// The host has waited for the pass, or, where nobody looked in between, has begun the next one.
void ResidentExperts::finish_pass(bool waited) {
  unfinished_ = false;
  if (waited && record_.way == PassWay::kTouched) read_touched_counts();
  record_.actual_ms = pass_ms();
  if (streams(record_.way) && stream_.first_copy_bytes() > 0) {
    const auto us = state_.device.elapsed_us(stream_.first_copy_from(), stream_.first_copy_to());
    if (us) learner_.add_copy(static_cast<double>(stream_.first_copy_bytes()), *us / 1000);
  }
  // Beside the CPU, neither the link nor the products say how long they took.
  if (!disturbed_ && record_.cpu_experts == 0) {
    learner_.add_pass({record_.way, record_.rows, pass_bytes_, record_.actual_ms});
  }
  if (!disturbed_ && cpu_could_) note_cpu_pass();
  PassTotals& totals = totals_[static_cast<size_t>(record_.way)];
  ++totals.passes;
  totals.rows += static_cast<uint64_t>(record_.rows);
  totals.streamed_bytes += record_.streamed_bytes;
  totals.predicted_ms += record_.predicted_ms;
  totals.actual_ms += record_.actual_ms;
  passes_.push_back(record_);
  if (passes_.size() > kPassHistory) passes_.pop_front();
}

void ResidentExperts::note_cpu_pass() {
  const double misses = pass_bytes_ + static_cast<double>(stream_.cpu_bytes());
  cpu_->note_pass({record_.cpu_experts > 0, record_.rows, misses, record_.actual_ms}, learner_.rates());
}

void ResidentExperts::forget_slots() {
  stream_.forget();
  for (const auto& pool : state_.pools) {
    slot_ops::invalidate(state_.compute, pool->map.view(), 0, static_cast<int32_t>(pool->slots));
  }
}

void ResidentExperts::require_idle(const char* what) const {
  if (pass_ == nullptr && !decoding_) return;
  throw Error(ErrorCode::kInvalidArgument, std::string(what) + " of expert slots inside a forward");
}

FillCount ResidentExperts::fill_from(std::span<const Resident> residents) {
  require_idle("a warm fill");
  const FillCount filled = warm_.fill_from(residents);
  warm_filled_.rows += filled.rows;
  warm_filled_.bytes += filled.bytes;
  return filled;
}

FillCount ResidentExperts::fill_idle(size_t budget_bytes) {
  require_idle("an idle fill");
  const FillCount filled = warm_.fill_idle(budget_bytes);
  idle_filled_.rows += filled.rows;
  idle_filled_.bytes += filled.bytes;
  return filled;
}

std::vector<Resident> ResidentExperts::residency() {
  require_idle("a list");
  return warm_.residency();
}

void ResidentExperts::resize(int64_t slots) {
  require_idle("a resize");
  state_.resize(slots);
  stream_.reshape();
  ++resizes_;
}

void ResidentExperts::queue_checks() {
  state_.queue_status();
  decode_.queue_sample();
  const int64_t every = state_.settings.audit_every;
  if (every <= 0 || ++steps_ % static_cast<uint64_t>(every) != 0 || state_.pass_open) return;
  auto* results = audit_memory_.as<AuditResult>();
  for (size_t p = 0; p < state_.pools.size(); ++p)
    audit(state_.compute, state_, *state_.pools[p], results + p);
  state_.compute.copy("audit", audit_results_.data(), results, audit_results_.bytes());
  ++audits_;
}

void ResidentExperts::check() {
  if (unfinished_) finish_pass(true);
  try {
    state_.throw_if_failed();
  } catch (const Error&) {
    cpu_->after_wait(true);
    throw;
  }
  cpu_->after_wait(false);
  decode_.learn();
  for (size_t p = 0; p < audit_results_.size(); ++p) {
    if (audit_results_[p].violations > 0) {
      throw Error(ErrorCode::kInvalidArgument, describe(audit_results_[p], *state_.pools[p]));
    }
  }
}

ExpertReport ResidentExperts::report() {
  state_.queue_status();
  state_.device.wait(state_.compute, "report");
  check();
  ExpertReport report;
  report.passes.assign(passes_.begin(), passes_.end());
  report.totals = totals_;
  report.decode_steps = decode_steps_;
  report.lookahead_budget = decode_.most_predictions();
  report.warm = warm_filled_;
  report.idle = idle_filled_;
  report.resizes = resizes_;
  std::vector<std::vector<LayerCounters>> counters(state_.pools.size());
  for (size_t p = 0; p < state_.pools.size(); ++p) {
    const ExpertPool& pool = *state_.pools[p];
    report.slots += pool.slots;
    report.ring_slots += pool.ring;
    counters[p].resize(pool.layers.size());
    state_.compute.copy("counters", counters[p].data(), pool.map.view().counters,
                        pool.layers.size() * sizeof(LayerCounters));
  }
  std::vector<TransientCounters> touched(state_.layers.size());
  state_.compute.copy("counters", touched.data(), touched_.counters(),
                      touched.size() * sizeof(TransientCounters));
  std::vector<ForecastCounters> forecasts(state_.layers.size());
  state_.compute.copy("counters", forecasts.data(), decode_.forecast_counters(),
                      forecasts.size() * sizeof(ForecastCounters));
  std::vector<ArrivalCounters> arrivals(state_.layers.size());
  state_.compute.copy("counters", arrivals.data(), decode_.arrivals().counters(),
                      arrivals.size() * sizeof(ArrivalCounters));
  std::vector<StreamCounters> streamed(state_.layers.size());
  state_.compute.copy("counters", streamed.data(), stream_.counters(),
                      streamed.size() * sizeof(StreamCounters));
  state_.device.wait(state_.compute, "report");
  for (size_t l = 0; l < state_.layers.size(); ++l) {
    const LayerState& layer = state_.layers[l];
    const LayerCounters& c = counters[pool_of(state_, l)][static_cast<size_t>(layer.local)];
    const uint64_t row = layer.pool->layout.row_bytes;
    report.layers.push_back({c.distinct, c.hits, c.fetched, c.misses - c.fetched, c.predicted,
                             c.predicted_used, c.stalls, touched[l].distinct,
                             touched[l].misses - touched[l].cpu, touched[l].cpu, forecasts[l], row,
                             streamed[l].cpu, streamed[l].cpu_rows, decode_.arrivals().late()[l],
                             arrivals[l].again + streamed[l].again});
    report.late_bytes += report.layers.back().late * row;
    report.duplicate_bytes += report.layers.back().duplicate * row;
    report.demand_bytes += c.fetched * row;
    report.predicted_bytes += c.predicted * row;
    report.predicted_used_bytes += c.predicted_used * row;
    report.touched_bytes += (touched[l].misses - touched[l].cpu) * row;
    SLUICE_CHECK_MSG(touched[l].overflows == 0, "a touched pass ran out of ring slots");
  }
  report.cpu = cpu_->report();
  for (const PassTotals& totals : totals_) report.streamed_bytes += totals.streamed_bytes;
  return report;
}

}  // namespace sluice
