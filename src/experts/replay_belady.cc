// Belady's bound: evicts what is needed last, because it has read the rest of the trace.
#include <limits>

#include "experts/replay_heap.h"
#include "experts/replay_order.h"

namespace sluice {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

/// For each key of each call the next call that names it; kNever behind the last.
std::vector<int64_t> next_uses(const ReplayCalls& calls) {
  std::vector<int64_t> next(calls.keys.size());
  std::vector<int64_t> later(static_cast<size_t>(calls.layers * calls.experts), kNever);
  for (size_t c = calls.calls.size(); c-- > 0;) {
    const ReplayCalls::Call& call = calls.calls[c];
    for (size_t i = call.first; i < call.first + static_cast<size_t>(call.count); ++i) {
      int64_t& use = later[static_cast<size_t>(calls.keys[i])];
      next[i] = use;
      use = static_cast<int64_t>(c);
    }
  }
  return next;
}

class BeladyOrder final : public VictimOrder {
 public:
  explicit BeladyOrder(const ReplayPool& pool)
      : calls_(pool.calls),
        owner_(pool.owner),
        next_(next_uses(pool.calls)),
        next_of_(static_cast<size_t>(pool.calls.layers * pool.calls.experts)),
        heap_(pool.calls.slots) {}

  void begin(const ReplayCalls::Call& call) override {
    ++call_;
    for (size_t i = call.first; i < call.first + static_cast<size_t>(call.count); ++i) {
      next_of_[static_cast<size_t>(calls_.keys[i])] = next_[i];
    }
  }
  void hold(int32_t slot) override { heap_.remove(slot); }
  int32_t take() override { return heap_.pop(); }
  void release(std::span<const int32_t> slots) override {
    for (const int32_t slot : slots) {
      const auto key = static_cast<size_t>(owner_[static_cast<size_t>(slot)]);
      heap_.push({-next_of_[key], call_, slot});
    }
  }

 private:
  const ReplayCalls& calls_;
  const std::vector<int32_t>& owner_;
  const std::vector<int64_t> next_;  // as calls_.keys
  std::vector<int64_t> next_of_;     // [layers * experts]
  SlotHeap heap_;
  int64_t call_ = 0;
};

}  // namespace

std::unique_ptr<VictimOrder> make_belady_order(const ReplayPool& pool) {
  return std::make_unique<BeladyOrder>(pool);
}

}  // namespace sluice
