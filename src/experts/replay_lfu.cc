// Least frequently used, with counts that halve.
#include <cmath>

#include "experts/replay_heap.h"
#include "experts/replay_order.h"

namespace sluice {
namespace {

/// Instead of ageing all counts at every token, later uses count more; the order is the same.
class LfuOrder final : public VictimOrder {
 public:
  explicit LfuOrder(const ReplayPool& pool)
      : owner_(pool.owner),
        half_life_(pool.options.lfu_half_life_tokens),
        weights_(lfu_weights(half_life_)),
        counts_(static_cast<size_t>(pool.calls.layers * pool.calls.experts)),
        heap_(pool.calls.slots) {}

  void begin(const ReplayCalls::Call& call) override {
    ++call_;
    const int64_t steps = call.token / half_life_ - base_;
    if (steps > kLfuRebase) rebase(steps);
    weight_ = weights_[static_cast<size_t>(call.token % half_life_)] << (call.token / half_life_ - base_);
  }
  void hold(int32_t slot) override { heap_.remove(slot); }
  int32_t take() override { return heap_.pop(); }
  void release(std::span<const int32_t> slots) override {
    for (const int32_t slot : slots) {
      count_of(slot) += weight_;
      heap_.push({value_of(slot), call_, slot});
    }
  }

 private:
  uint64_t& count_of(int32_t slot) { return counts_[static_cast<size_t>(owner_[static_cast<size_t>(slot)])]; }
  int64_t value_of(int32_t slot) { return static_cast<int64_t>(count_of(slot)); }
  void rebase(int64_t steps) {
    for (uint64_t& count : counts_) count = steps > 63 ? 0 : count >> steps;
    base_ += steps;
    heap_.revalue([this](int32_t slot) { return value_of(slot); });
  }

  const std::vector<int32_t>& owner_;
  const int64_t half_life_;
  const std::vector<uint64_t> weights_;
  std::vector<uint64_t> counts_;  // [layers * experts]
  SlotHeap heap_;
  uint64_t weight_ = 0;
  int64_t base_ = 0, call_ = 0;
};

}  // namespace

std::vector<uint64_t> lfu_weights(int64_t half_life_tokens) {
  std::vector<uint64_t> weights(static_cast<size_t>(half_life_tokens));
  for (size_t r = 0; r < weights.size(); ++r) {
    const double part = static_cast<double>(r) / static_cast<double>(half_life_tokens);
    weights[r] = static_cast<uint64_t>(std::llround(0x1p12 * std::exp2(part)));
  }
  return weights;
}

std::unique_ptr<VictimOrder> make_lfu_order(const ReplayPool& pool) {
  return std::make_unique<LfuOrder>(pool);
}

}  // namespace sluice
