// The hand-shake between the compute stream and the workers.
#include "experts/cpu_experts.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

#include "base/cpu.h"
#include "base/error.h"
#include "experts/patience.h"

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;

uint64_t load(uint64_t& flag) { return std::atomic_ref(flag).load(std::memory_order_acquire); }
void store(uint64_t& flag, uint64_t value) { std::atomic_ref(flag).store(value, std::memory_order_release); }

int64_t nanoseconds_since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

int threads_of(const CpuSettings& settings) {
  if (settings.inline_work) return 1;
  return settings.threads > 0 ? settings.threads : std::max(1, physical_cores() - 1);
}

int64_t most_experts(std::span<const LayerRows> layers) {
  int64_t most = 0;
  for (const LayerRows& layer : layers) most = std::max(most, layer.experts);
  return most;
}

int64_t most_intermediate(std::span<const LayerRows> layers) {
  int64_t most = 0;
  for (const LayerRows& layer : layers) most = std::max(most, layer.layout.intermediate);
  return most;
}

std::set<int32_t> distinct(const int32_t* ids, int64_t n) {
  std::set<int32_t> experts(ids, ids + n);
  experts.erase(-1);
  return experts;
}

}  // namespace

CpuExperts::CpuExperts(Device& device, std::span<const LayerRows> rows, const ExpertShape& shape,
                       const CpuSettings& settings, int64_t max_rows)
    : layers_(rows),
      settings_(settings),
      top_k_(shape.top_k),
      pool_(threads_of(settings)),
      shared_memory_(device.allocate(sizeof(Shared), "CPU experts", MemoryKind::kPinned)),
      shared_(shared_memory_.as<Shared>()),
      identity_(static_cast<size_t>(most_experts(rows))) {
  const auto hidden = static_cast<size_t>(rows[0].layout.hidden);
  const auto pairs = static_cast<size_t>(max_rows * shape.top_k);
  const auto pinned = [&](size_t bytes) {
    return device.allocate(bytes, "CPU experts", MemoryKind::kPinned);
  };
  x_ = pinned(static_cast<size_t>(max_rows) * hidden * sizeof(float));
  ids_ = pinned(pairs * sizeof(int32_t));
  outputs_ = pinned(pairs * hidden * sizeof(float));
  activations_.resize(pairs * static_cast<size_t>(most_intermediate(rows)));
  std::iota(identity_.begin(), identity_.end(), 0);
  device.host_writes(range_of(shared_, 1), "CPU experts");
  *shared_ = {};
  if (!settings.inline_work) thread_ = std::thread([this] { serve(); });
}

CpuExperts::~CpuExperts() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void CpuExperts::set_awake(bool awake) {
  {
    const std::lock_guard lock(mutex_);
    awake_ = awake;
  }
  if (awake) wake_.notify_all();
}

void CpuExperts::serve() {
  Patience patience;
  while (!stopping_) {
    if (load(shared_->posted) != shared_->done) {
      answer();
      patience = {};
    } else if (may_get_work()) {
      patience.pause();
    } else {
      // A step may be over for the host before this thread has woken up for it.
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || may_get_work(); });
      patience = {};
    }
  }
}

// `calls` is read before `posted`: once all calls have run, what they posted is seen.
bool CpuExperts::may_get_work() {
  return awake_ || load(shared_->calls) != queued_ || load(shared_->posted) != shared_->done;
}

void CpuExperts::answer() {
  Shared& s = *shared_;
  const auto start = Clock::now();
  s.threw = 0;
  try {
    if (settings_.before_work) settings_.before_work(s.layer);
    compute(s.layer, s.rows, s.k);
  } catch (const std::exception& error) {
    s.threw = 1;
    if (failure_text_.empty()) failure_text_ = error.what();
  }
  if (!settings_.inline_work) s.totals.busy_ns += nanoseconds_since(start);
  store(s.done, load(s.posted));
}

void CpuExperts::compute(int64_t layer, int64_t rows, int64_t k) {
  const LayerRows& source = layers_[static_cast<size_t>(layer)];
  const auto* ids = ids_.as<int32_t>();
  const ExpertRows view{source.layout,    source.rows.as<std::byte>(),
                        identity_.data(), source.scalars.data(),
                        source.experts,   source.compute};
  expert_products_host(pool_, x_.as<float>(), {ids, nullptr, rows, k}, view, 0,
                       static_cast<int32_t>(source.experts), activations_.data(), outputs_.as<float>());
  CpuTotals& totals = shared_->totals;
  ++totals.calls;
  totals.experts += distinct(ids, rows * k).size();
  totals.rows += static_cast<uint64_t>(rows * k - std::count(ids, ids + rows * k, -1));
}

double CpuExperts::measure_ms() {
  const int64_t k = top_k_;
  std::fill_n(x_.as<float>(), layers_[0].layout.hidden, 1.0f);
  std::copy_n(identity_.begin(), k, ids_.as<int32_t>());
  int64_t best = INT64_MAX;
  for (int i = 0; i < 3; ++i) {
    const auto start = Clock::now();
    compute(0, 1, k);
    best = std::min(best, nanoseconds_since(start));
  }
  shared_->totals = {};
  return std::max(1e-6, static_cast<double>(best) / 1e6 / static_cast<double>(k));
}

void CpuExperts::post(Stream& compute, const MoeInput& input, const int32_t* cpu_ids) {
  const int64_t rows = input.routes.rows, k = input.routes.k, n = rows * k;
  const int64_t values = rows * layers_[0].layout.hidden;
  queued_.fetch_add(1);
  untaken_ = true;
  const auto ranges = [=, this](RangeSink& sink) {
    if (std::count(cpu_ids, cpu_ids + n, -1) == n) return;
    sink.reads(range_of(input.x, values));
    sink.writes(range_of(x_.as<float>(), values));
    sink.writes(range_of(ids_.as<int32_t>(), n));
  };
  compute.launch({.name = "post CPU experts",
                  .reads = {range_of(shared_, 1), range_of(cpu_ids, n)},
                  .writes = {range_of(shared_, 1)}},
                 ranges, [=, this, layer = input.layer, x = input.x](const HostContext&) {
                   Shared& s = *shared_;
                   const uint64_t call = s.calls + 1;
                   if (std::count(cpu_ids, cpu_ids + n, -1) != n) {
                     if (s.posted == load(s.done)) {
                       std::memcpy(x_.data(), x, static_cast<size_t>(values) * sizeof(float));
                       std::memcpy(ids_.data(), cpu_ids, static_cast<size_t>(n) * sizeof(int32_t));
                       s.layer = layer;
                       s.rows = rows;
                       s.k = k;
                       store(s.posted, call);
                     } else {
                       note(Fault::kBusy, layer, cpu_ids, n);
                     }
                   }
                   store(s.calls, call);
                 });
}

void CpuExperts::take(Stream& compute, const MoeInput& input, const int32_t* cpu_ids) {
  const int64_t n = input.routes.rows * input.routes.k, hidden = layers_[0].layout.hidden;
  float* outputs = input.outputs;
  untaken_ = false;
  const auto ranges = [=, this, layer = input.layer, rows = input.routes.rows,
                       k = input.routes.k](RangeSink& sink) {
    declare_answer(sink, layer, cpu_ids, rows, k);
    for (int64_t i = 0; i < n; ++i) {
      if (cpu_ids[i] >= 0) sink.writes(range_of(outputs + i * hidden, hidden));
    }
  };
  compute.launch({.name = "take CPU experts",
                  .reads = {range_of(shared_, 1), range_of(cpu_ids, n)},
                  .writes = {range_of(shared_, 1)}},
                 ranges, [=, this, layer = input.layer](const HostContext&) {
                   Shared& s = *shared_;
                   if (s.posted != s.calls) return;  // nothing was handed over
                   if (!wait_for_answer()) return note(Fault::kSilent, layer, cpu_ids, n);
                   if (s.threw != 0) return note(Fault::kThrew, layer, cpu_ids, n);
                   for (int64_t i = 0; i < n; ++i) {
                     if (cpu_ids[i] < 0) continue;
                     std::memcpy(outputs + i * hidden, outputs_.as<float>() + i * hidden,
                                 static_cast<size_t>(hidden) * sizeof(float));
                   }
                 });
}

// The workers' reads and writes belong to the operation that takes their answer: the hand-shake puts them
// between it and post.
void CpuExperts::declare_answer(RangeSink& sink, int64_t layer, const int32_t* ids, int64_t rows,
                                int64_t k) const {
  const LayerRows& source = layers_[static_cast<size_t>(layer)];
  const int64_t n = rows * k, hidden = source.layout.hidden;
  if (std::count(ids, ids + n, -1) == n) return;
  sink.reads(range_of(ids_.as<int32_t>(), n));
  for (int64_t i = 0; i < n; ++i) {
    if (ids[i] < 0) continue;
    sink.reads({source.row(ExpertId(ids[i])), source.layout.row_bytes});
    sink.reads(range_of(x_.as<float>() + i / k * hidden, hidden));
    sink.writes(range_of(outputs_.as<float>() + i * hidden, hidden));
  }
}

void CpuExperts::drop(Stream& compute) {
  if (!untaken_) return;
  untaken_ = false;
  const auto ranges = [this](RangeSink& sink) {
    const Shared& s = *shared_;
    if (!answered()) declare_answer(sink, s.layer, ids_.as<int32_t>(), s.rows, s.k);
  };
  compute.launch(
      {.name = "drop CPU experts", .reads = {range_of(shared_, 1)}, .writes = {range_of(shared_, 1)}}, ranges,
      [this](const HostContext&) {
        Shared& s = *shared_;
        if (answered() || wait_for_answer()) return;
        note(Fault::kSilent, s.layer, ids_.as<int32_t>(), s.rows * s.k);
      });
}

bool CpuExperts::wait_for_answer() {
  Shared& s = *shared_;
  if (settings_.inline_work) {
    answer();
    return true;
  }
  if (load(s.done) == s.posted) return true;
  const auto start = Clock::now();
  Patience patience;
  while (load(s.done) != s.posted) {
    if (Clock::now() - start > settings_.watchdog) return false;
    patience.pause();
  }
  s.totals.waited_ns += nanoseconds_since(start);
  return true;
}

void CpuExperts::note(Fault fault, int64_t layer, const int32_t* cpu_ids, int64_t n) {
  Failure& failure = shared_->failure;
  if (failure.fault != Fault::kNone) return;
  failure = {};
  failure.fault = fault;
  failure.layer = static_cast<int32_t>(layer);
  const std::set<int32_t> experts = distinct(cpu_ids, n);
  failure.experts = static_cast<int32_t>(experts.size());
  const auto shown = std::min(experts.size(), failure.ids.size());
  std::copy_n(experts.begin(), shown, failure.ids.begin());
}

std::string CpuExperts::describe(const Failure& failure) const {
  std::string text = "experts on the CPU: MoE layer " + std::to_string(failure.layer) + ", experts";
  const auto shown = std::min<size_t>(static_cast<size_t>(failure.experts), failure.ids.size());
  for (size_t i = 0; i < shown; ++i) text += (i == 0 ? " " : ", ") + std::to_string(failure.ids[i]);
  if (static_cast<size_t>(failure.experts) > shown) text += ", ...";
  switch (failure.fault) {
    case Fault::kThrew:
      return text + ": a worker failed: " + failure_text_;
    case Fault::kBusy:
      return text + ": the workers still have an earlier call";
    default:
      return text + ": the workers did not answer within " + std::to_string(settings_.watchdog.count()) +
             " ms; until they do, missing experts are fetched (is the machine overloaded, or stopped?)";
  }
}

void CpuExperts::throw_if_failed() {
  const Failure failure = shared_->failure;
  if (failure.fault == Fault::kNone) return;
  shared_->failure = {};
  const std::string text = describe(failure);
  if (answered()) failure_text_.clear();
  throw Error(ErrorCode::kIo, text);
}

bool CpuExperts::answered() const { return load(shared_->done) == load(shared_->posted); }

CpuTotals CpuExperts::totals() {
  if (answered()) totals_ = shared_->totals;  // else the workers may be writing them
  return totals_;
}

}  // namespace sluice
