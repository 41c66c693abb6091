// How the policies of a replay keep the resident slots ordered.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "experts/replay.h"

namespace sluice {

/// What an order may look at.
struct ReplayPool {
  const ReplayCalls& calls;
  const std::vector<int32_t>& owner;  // [slots]: key, -1 while empty
  const ReplayOptions& options;
};

/// The slots that may be evicted, in the order of one policy. A slot that the running call uses is outside.
class VictimOrder {
 public:
  virtual ~VictimOrder() = default;
  /// Before anything of `call` is looked up.
  virtual void begin(const ReplayCalls::Call& call) = 0;
  /// The running call hits `slot`: it leaves the order.
  virtual void hold(int32_t slot) = 0;
  /// Removes and returns the victim. The order is not empty.
  virtual int32_t take() = 0;
  /// The running call ends: `slots` (ascending) are those it used, and enter the order as just used.
  virtual void release(std::span<const int32_t> slots) = 0;
};

std::unique_ptr<VictimOrder> make_lru_order(const ReplayPool& pool);
std::unique_ptr<VictimOrder> make_lfu_order(const ReplayPool& pool);
std::unique_ptr<VictimOrder> make_least_stale_order(const ReplayPool& pool);
std::unique_ptr<VictimOrder> make_scored_order(const ReplayPool& pool);
std::unique_ptr<VictimOrder> make_belady_order(const ReplayPool& pool);

}  // namespace sluice
