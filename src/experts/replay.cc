// Cuts traces into calls and runs them through a pool.
#include "experts/replay.h"

#include <algorithm>
#include <string>

#include "base/counted.h"
#include "base/error.h"
#include "experts/replay_order.h"

namespace sluice {
namespace {

/// Cuts the rows of one layer of a step into calls.
class CallCutter {
 public:
  explicit CallCutter(ReplayCalls& calls) : calls_(calls) {
    seen_.resize(static_cast<size_t>(calls.layers * calls.experts));
    ever_.resize(seen_.size());
  }

  void begin(int32_t step, int32_t layer, int64_t token) {
    call_ = {step, layer, token, calls_.keys.size(), 0};
    ++stamp_;
  }
  /// `ids` [top_k]: at most as many as there are slots.
  void add_row(std::span<const uint16_t> ids) {
    const size_t row = calls_.keys.size();
    collect(ids);
    if (static_cast<int64_t>(calls_.keys.size() - call_.first) <= calls_.slots) return;
    calls_.keys.resize(row);
    end();
    begin(call_.step, call_.layer, call_.token);
    collect(ids);
  }
  void end() {
    call_.count = static_cast<int32_t>(calls_.keys.size() - call_.first);
    if (call_.count == 0) return;  // padding alone
    std::sort(calls_.keys.begin() + static_cast<int64_t>(call_.first), calls_.keys.end());
    calls_.calls.push_back(call_);
  }

 private:
  void collect(std::span<const uint16_t> ids) {
    for (const uint16_t id : ids) {
      if (id == Trace::kNoExpert) continue;
      const auto key = static_cast<size_t>(call_.layer * calls_.experts + id);
      if (seen_[key] == stamp_) continue;
      seen_[key] = stamp_;
      calls_.keys.push_back(static_cast<int32_t>(key));
      calls_.distinct_keys += !ever_[key];
      ever_[key] = true;
    }
  }

  ReplayCalls& calls_;
  ReplayCalls::Call call_;
  std::vector<uint64_t> seen_;  // [layers, experts]: the last call that named it
  std::vector<bool> ever_;
  uint64_t stamp_ = 0;
};

int64_t tokens_of(const Trace& trace, const TraceStep& step) {
  const auto ids = trace.ids_of(step, 0);
  const auto k = static_cast<size_t>(trace.model.top_k);
  int64_t tokens = 0;
  for (size_t at = 0; at < ids.size(); at += k) {
    const auto row = ids.subspan(at, k);
    tokens += std::any_of(row.begin(), row.end(), [](uint16_t id) { return id != Trace::kNoExpert; });
  }
  return tokens;
}

void check_slots(const TraceModel& model, int64_t slots) {
  if (slots < model.top_k) {
    throw Error(ErrorCode::kInvalidArgument, counted(slots, "slot is", "slots are") +
                                                 " too few: one token uses " + std::to_string(model.top_k) +
                                                 " experts of a layer at once, so the least is " +
                                                 std::to_string(model.top_k));
  }
  if (slots > model.all_experts()) {
    throw Error(ErrorCode::kInvalidArgument, std::to_string(slots) + " slots are more than all " +
                                                 std::to_string(model.all_experts()) + " experts (" +
                                                 std::to_string(model.layers.size()) + " layers of " +
                                                 std::to_string(model.experts) + ")");
  }
}

std::unique_ptr<VictimOrder> make_order(ReplayPolicy policy, const ReplayPool& pool) {
  switch (policy) {
    case ReplayPolicy::kLru:
      return make_lru_order(pool);
    case ReplayPolicy::kLfu:
      return make_lfu_order(pool);
    case ReplayPolicy::kLeastStale:
      return make_least_stale_order(pool);
    case ReplayPolicy::kScored:
      return make_scored_order(pool);
    case ReplayPolicy::kBelady:
      return make_belady_order(pool);
  }
  SLUICE_CHECK(false);
}

/// The pool's two maps, and the running call.
class Pool {
 public:
  Pool(const ReplayCalls& calls, ReplayPolicy policy, const ReplayOptions& options)
      : calls_(calls),
        slot_of_(static_cast<size_t>(calls.layers * calls.experts), -1),
        owner_(static_cast<size_t>(calls.slots), -1),
        order_(make_order(policy, {calls, owner_, options})) {
    result_.tokens = calls.tokens;
  }

  void run(const ReplayCalls::Call& call) {
    held_.clear();
    missed_.clear();
    order_->begin(call);
    for (size_t i = call.first; i < call.first + static_cast<size_t>(call.count); ++i) {
      const int32_t key = calls_.keys[i], slot = slot_of_[static_cast<size_t>(key)];
      if (slot < 0) {
        missed_.push_back(key);
        continue;
      }
      order_->hold(slot);
      held_.push_back(slot);
    }
    result_.hits += static_cast<int64_t>(held_.size());
    result_.misses += static_cast<int64_t>(missed_.size());
    result_.missed_bytes += missed_.size() * calls_.row_bytes[static_cast<size_t>(call.layer)];
    for (const int32_t key : missed_) install(key);
    std::sort(held_.begin(), held_.end());
    order_->release(held_);
  }

  const ReplayResult& result() const { return result_; }

 private:
  void install(int32_t key) {
    const int32_t slot = used_ < calls_.slots ? static_cast<int32_t>(used_++) : order_->take();
    int32_t& owner = owner_[static_cast<size_t>(slot)];
    if (owner >= 0) slot_of_[static_cast<size_t>(owner)] = -1;
    owner = key;
    slot_of_[static_cast<size_t>(key)] = slot;
    held_.push_back(slot);
  }

  const ReplayCalls& calls_;
  std::vector<int32_t> slot_of_, owner_;  // [layers * experts], [slots]: -1 none
  std::unique_ptr<VictimOrder> order_;
  int64_t used_ = 0;  // slots from here on are empty
  std::vector<int32_t> held_, missed_;
  ReplayResult result_;
};

}  // namespace

std::string_view name_of(ReplayPolicy policy) {
  switch (policy) {
    case ReplayPolicy::kLru:
      return "lru";
    case ReplayPolicy::kLfu:
      return "lfu";
    case ReplayPolicy::kLeastStale:
      return "least-stale";
    case ReplayPolicy::kScored:
      return "scored";
    case ReplayPolicy::kBelady:
      return "belady";
  }
  return "unknown";
}

ReplayCalls make_replay_calls(const Trace& trace, int64_t slots, bool decode_only) {
  const TraceModel& model = trace.model;
  check_slots(model, slots);
  ReplayCalls calls;
  calls.layers = static_cast<int64_t>(model.layers.size());
  calls.experts = model.experts;
  calls.slots = slots;
  for (const TraceModel::Layer& layer : model.layers) calls.row_bytes.push_back(layer.row_bytes);
  CallCutter cutter(calls);
  const auto k = static_cast<size_t>(model.top_k);
  for (size_t s = 0; s < trace.steps.size(); ++s) {
    const TraceStep& step = trace.steps[s];
    if (decode_only && step.kind != StepKind::kDecode) continue;
    calls.tokens += tokens_of(trace, step);
    for (size_t l = 0; l < model.layers.size(); ++l) {
      const auto ids = trace.ids_of(step, l);
      cutter.begin(static_cast<int32_t>(s), static_cast<int32_t>(l), calls.tokens);
      for (size_t at = 0; at < ids.size(); at += k) cutter.add_row(ids.subspan(at, k));
      cutter.end();
    }
  }
  return calls;
}

double ReplayResult::hit_rate() const {
  return hits + misses == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(hits + misses);
}
double ReplayResult::misses_per_token() const {
  return tokens == 0 ? 0 : static_cast<double>(misses) / static_cast<double>(tokens);
}
double ReplayResult::bytes_per_token() const {
  return tokens == 0 ? 0 : static_cast<double>(missed_bytes) / static_cast<double>(tokens);
}

ReplayResult replay(const ReplayCalls& calls, ReplayPolicy policy, const ReplayOptions& options) {
  SLUICE_CHECK(options.lfu_half_life_tokens >= 1 && options.lfu_half_life_tokens <= kLfuMaxHalfLife);
  SLUICE_CHECK(options.scored_beta >= 0 && options.scored_beta <= 1'000'000);
  Pool pool(calls, policy, options);
  for (const ReplayCalls::Call& call : calls.calls) pool.run(call);
  return pool.result();
}

}  // namespace sluice
