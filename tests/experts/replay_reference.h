// Replays by definition: plain scans over all slots and, for Belady, over the rest of the trace.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "experts/replay.h"
#include "experts/trace.h"

namespace sluice::testing {

/// One replay; all state in plain maps by key or vectors by slot.
class ReplayReference {
 public:
  ReplayReference(const Trace& trace, ReplayPolicy policy, int64_t slots, bool decode_only,
                  const ReplayOptions& options)
      : trace_(trace), policy_(policy), options_(options), slots_(static_cast<size_t>(slots)) {
    cut(static_cast<size_t>(slots), decode_only);
  }

  ReplayResult run() {
    for (now_ = 0; now_ < calls_.size(); ++now_) run_call(calls_[now_]);
    result_.tokens = tokens_;
    return result_;
  }

 private:
  struct Call {
    int64_t step, layer, token;
    std::set<int64_t> experts;
  };
  struct Slot {
    int64_t layer = -1, expert = -1;  // -1: empty
    int64_t last_call = -1, last_token = 0, last_step = -1;
  };

  void cut(size_t slots, bool decode_only) {
    const auto k = static_cast<size_t>(trace_.model.top_k);
    for (size_t s = 0; s < trace_.steps.size(); ++s) {
      const TraceStep& step = trace_.steps[s];
      if (decode_only && step.kind == StepKind::kPrefill) continue;
      for (int64_t r = 0; r < step.rows; ++r) {
        tokens_ += trace_.ids_of(step, 0)[static_cast<size_t>(r) * k] != Trace::kNoExpert;
      }
      for (size_t l = 0; l < trace_.model.layers.size(); ++l) {
        const Call fresh{static_cast<int64_t>(s), static_cast<int64_t>(l), tokens_, {}};
        Call call = fresh;
        for (int64_t r = 0; r < step.rows; ++r) {
          std::set<int64_t> row;
          for (size_t i = 0; i < k; ++i) {
            const uint16_t id = trace_.ids_of(step, l)[static_cast<size_t>(r) * k + i];
            if (id != Trace::kNoExpert) row.insert(id);
          }
          std::set<int64_t> both = call.experts;
          both.insert(row.begin(), row.end());
          if (both.size() > slots) {
            calls_.push_back(call);
            both = row;
          }
          call.experts = both;
        }
        if (!call.experts.empty()) calls_.push_back(call);
      }
    }
  }

  void run_call(const Call& call) {
    age_counts(call);
    std::vector<int64_t> missed;
    for (const int64_t expert : call.experts) {
      const auto slot = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& s) {
        return s.layer == call.layer && s.expert == expert;
      });
      if (slot == slots_.end()) {
        missed.push_back(expert);
      } else {
        ++result_.hits;
        stamp(*slot, call);
      }
    }
    for (const int64_t expert : missed) {
      ++result_.misses;
      result_.missed_bytes += trace_.model.layers[static_cast<size_t>(call.layer)].row_bytes;
      Slot& slot = victim(call);
      slot.layer = call.layer;
      slot.expert = expert;
      stamp(slot, call);
    }
    for (const int64_t expert : call.experts) {
      counts_[{call.layer, expert}] += lfu_weights(half_life())[static_cast<size_t>(call.token % half_life())]
                                       << (call.token / half_life() - base_);
    }
  }

  void stamp(Slot& slot, const Call& call) const {
    slot.last_call = static_cast<int64_t>(now_);
    slot.last_token = call.token;
    slot.last_step = call.step;
  }

  int64_t half_life() const { return options_.lfu_half_life_tokens; }
  void age_counts(const Call& call) {
    const int64_t steps = call.token / half_life() - base_;
    if (steps <= kLfuRebase) return;
    for (auto& [key, count] : counts_) count = steps >= 64 ? 0 : count / (uint64_t{1} << steps);
    base_ += steps;
  }

  Slot& victim(const Call& call) {
    Slot* best = nullptr;
    for (Slot& slot : slots_) {
      if (slot.layer < 0) return slot;
      if (slot.last_call == static_cast<int64_t>(now_)) continue;
      if (best == nullptr || before(slot, *best, call)) best = &slot;
    }
    return *best;
  }

  /// Does `a` go before `b`? Slots are compared in ascending order, so a tie keeps the lower one.
  bool before(const Slot& a, const Slot& b, const Call& call) const {
    const std::vector<int64_t> left = worth(a, call), right = worth(b, call);
    return left != right ? left < right : a.last_call < b.last_call;
  }

  /// What goes first is lowest, compared from the left.
  std::vector<int64_t> worth(const Slot& slot, const Call& call) const {
    switch (policy_) {
      case ReplayPolicy::kLru:
        return {slot.last_call};
      case ReplayPolicy::kLfu:
        return {static_cast<int64_t>(counts_.at({slot.layer, slot.expert}))};
      case ReplayPolicy::kLeastStale:
        return {used_in_latest_turn(slot, call), -away(slot, call)};
      case ReplayPolicy::kScored:
        return {-((call.token - slot.last_token) * layers() + options_.scored_beta * away(slot, call))};
      case ReplayPolicy::kBelady:
        return {-next_use(slot)};
    }
    return {};
  }

  int64_t layers() const { return static_cast<int64_t>(trace_.model.layers.size()); }
  int64_t away(const Slot& slot, const Call& call) const {
    int64_t distance = 1;
    while ((call.layer + distance) % layers() != slot.layer) ++distance;
    return distance;
  }
  int64_t used_in_latest_turn(const Slot& slot, const Call&) const {
    for (size_t c = now_ + 1; c-- > 0;) {
      if (calls_[c].layer == slot.layer) return calls_[c].step == slot.last_step;
    }
    return 0;
  }
  int64_t next_use(const Slot& slot) const {
    for (size_t c = now_ + 1; c < calls_.size(); ++c) {
      if (calls_[c].layer == slot.layer && calls_[c].experts.count(slot.expert) != 0) {
        return static_cast<int64_t>(c);
      }
    }
    return std::numeric_limits<int64_t>::max();
  }

  const Trace& trace_;
  const ReplayPolicy policy_;
  const ReplayOptions options_;
  std::vector<Slot> slots_;
  std::vector<Call> calls_;
  size_t now_ = 0;
  int64_t tokens_ = 0, base_ = 0;
  std::map<std::pair<int64_t, int64_t>, uint64_t> counts_;
  ReplayResult result_;
};

}  // namespace sluice::testing
