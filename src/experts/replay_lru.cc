// Least recently used: one list in the order of (last use, slot).
#include "base/error.h"
#include "experts/replay_lists.h"
#include "experts/replay_order.h"

namespace sluice {
namespace {

class LruOrder final : public VictimOrder {
 public:
  explicit LruOrder(const ReplayPool& pool) : lists_(pool.calls.slots, 1) {}

  void begin(const ReplayCalls::Call&) override {}
  void hold(int32_t slot) override { lists_.remove(slot); }
  int32_t take() override {
    const int32_t slot = lists_.front(0);
    SLUICE_CHECK(slot >= 0);
    lists_.remove(slot);
    return slot;
  }
  void release(std::span<const int32_t> slots) override {
    for (const int32_t slot : slots) lists_.push_back(0, slot);
  }

 private:
  SlotLists lists_;
};

}  // namespace

std::unique_ptr<VictimOrder> make_lru_order(const ReplayPool& pool) {
  return std::make_unique<LruOrder>(pool);
}

}  // namespace sluice
