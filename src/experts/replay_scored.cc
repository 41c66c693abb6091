// Scored: recency and distance to the layer's next turn. Within a layer the distance is the same for all, so
// that the first of a list by (last use, slot) has the layer's highest score.
#include "base/error.h"
#include "experts/replay_lists.h"
#include "experts/replay_order.h"

namespace sluice {
namespace {

class ScoredOrder final : public VictimOrder {
 public:
  explicit ScoredOrder(const ReplayPool& pool)
      : beta_(pool.options.scored_beta),
        layers_(pool.calls.layers),
        lists_(pool.calls.slots, layers_),
        uses_(static_cast<size_t>(pool.calls.slots)) {}

  void begin(const ReplayCalls::Call& call) override {
    layer_ = call.layer;
    token_ = call.token;
    ++call_;
  }
  void hold(int32_t slot) override { lists_.remove(slot); }
  int32_t take() override {
    int32_t victim = -1;
    int64_t highest = -1;
    for (int64_t layer = 0; layer < layers_; ++layer) {
      const int32_t slot = lists_.front(layer);
      if (slot < 0) continue;
      const Use& use = uses_[static_cast<size_t>(slot)];
      const int64_t away = layer > layer_ ? layer - layer_ : layer - layer_ + layers_;
      const int64_t score = (token_ - use.token) * layers_ + beta_ * away;
      // No two layers share a last use, so that slots need no comparison.
      if (score > highest || (score == highest && use.call < uses_[static_cast<size_t>(victim)].call)) {
        highest = score;
        victim = slot;
      }
    }
    SLUICE_CHECK(victim >= 0);
    lists_.remove(victim);
    return victim;
  }
  void release(std::span<const int32_t> slots) override {
    for (const int32_t slot : slots) {
      uses_[static_cast<size_t>(slot)] = {call_, token_};
      lists_.push_back(layer_, slot);
    }
  }

 private:
  struct Use {
    int64_t call = 0, token = 0;
  };

  const int64_t beta_, layers_;
  SlotLists lists_;        // one a layer
  std::vector<Use> uses_;  // [slots]: the last one
  int64_t layer_ = 0, token_ = 0, call_ = 0;
};

}  // namespace

std::unique_ptr<VictimOrder> make_scored_order(const ReplayPool& pool) {
  return std::make_unique<ScoredOrder>(pool);
}

}  // namespace sluice
