// Least-stale: two lists a layer, what its latest turn used and what it did not, both by (last use, slot).
#include <bit>

#include "base/error.h"
#include "experts/replay_lists.h"
#include "experts/replay_order.h"

namespace sluice {
namespace {

class LeastStaleOrder final : public VictimOrder {
 public:
  explicit LeastStaleOrder(const ReplayPool& pool)
      : owner_(pool.owner),
        experts_(pool.calls.experts),
        layers_(pool.calls.layers),
        lists_(pool.calls.slots, 2 * layers_),
        stale_(static_cast<size_t>(pool.calls.slots)),
        turn_step_(static_cast<size_t>(layers_), -1) {
    for (auto& words : filled_) words.resize(static_cast<size_t>(layers_ + 63) / 64);
  }

  void begin(const ReplayCalls::Call& call) override {
    layer_ = call.layer;
    int64_t& step = turn_step_[static_cast<size_t>(layer_)];
    if (step == call.step) return;  // a later part of the same turn
    step = call.step;
    while (!lists_.empty(list(kFresh, layer_))) {
      const int32_t slot = lists_.front(list(kFresh, layer_));
      lists_.remove(slot);
      push(kStale, layer_, slot);
    }
    note(kFresh, layer_);
  }
  void hold(int32_t slot) override { remove(slot); }
  int32_t take() override {
    for (const Group group : {kStale, kFresh}) {
      const int64_t layer = furthest(filled_[group]);
      if (layer < 0) continue;
      const int32_t slot = lists_.front(list(group, layer));
      remove(slot);
      return slot;
    }
    SLUICE_CHECK(false);
  }
  void release(std::span<const int32_t> slots) override {
    for (const int32_t slot : slots) push(kFresh, layer_, slot);
  }

 private:
  enum Group : size_t { kStale = 0, kFresh = 1 };

  int64_t list(Group group, int64_t layer) const { return 2 * layer + static_cast<int64_t>(group); }
  void note(Group group, int64_t layer) {
    const uint64_t bit = uint64_t{1} << (layer % 64);
    uint64_t& word = filled_[group][static_cast<size_t>(layer / 64)];
    word = lists_.empty(list(group, layer)) ? word & ~bit : word | bit;
  }
  void push(Group group, int64_t layer, int32_t slot) {
    lists_.push_back(list(group, layer), slot);
    stale_[static_cast<size_t>(slot)] = group == kStale;
    note(group, layer);
  }
  void remove(int32_t slot) {
    lists_.remove(slot);
    note(stale_[static_cast<size_t>(slot)] ? kStale : kFresh, owner_[static_cast<size_t>(slot)] / experts_);
  }
  /// The last layer with a bit at or before the running one, else the last of all; -1 if there is none.
  int64_t furthest(const std::vector<uint64_t>& words) const {
    const auto own = static_cast<size_t>(layer_ / 64);
    const uint64_t up_to_own = ~uint64_t{0} >> (63 - layer_ % 64);
    if (const uint64_t word = words[own] & up_to_own; word != 0) return highest(own, word);
    for (size_t i = own; i-- > 0;) {
      if (words[i] != 0) return highest(i, words[i]);
    }
    for (size_t i = words.size(); i-- > own;) {
      if (words[i] != 0) return highest(i, words[i]);
    }
    return -1;
  }
  static int64_t highest(size_t index, uint64_t word) {
    return static_cast<int64_t>(index) * 64 + 63 - std::countl_zero(word);
  }

  const std::vector<int32_t>& owner_;
  const int64_t experts_, layers_;
  SlotLists lists_;
  std::vector<bool> stale_;          // [slots]: in which of its layer's lists
  std::vector<int64_t> turn_step_;   // [layers]: step of the latest turn
  std::vector<uint64_t> filled_[2];  // bit l of a group: layer l has a slot in it
  int64_t layer_ = 0;
};

}  // namespace

std::unique_ptr<VictimOrder> make_least_stale_order(const ReplayPool& pool) {
  return std::make_unique<LeastStaleOrder>(pool);
}

}  // namespace sluice
