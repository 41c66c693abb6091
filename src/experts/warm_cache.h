// Never cold: fills empty slots at the start and while idle, and tells what the slots hold.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "experts/expert_state.h"
#include "experts/slot_functions.h"

namespace sluice {

/// Experts that were queued for empty slots.
struct FillCount {
  uint64_t rows = 0, bytes = 0;
};

/// Experts of staged layers stay out: their bytes could not be gathered from where they lie.
///
/// Works on the compute stream, between forwards. Each call waits once for that stream, by a name of its own:
/// the host decides by the maps as they are, and its list of experts is free again.
class WarmCache {
 public:
  explicit WarmCache(ExpertState& state);

  /// Queues the experts `residents` (by MoE layer; least valuable first) into empty slots: of each pool the
  /// last ones that are absent and find a place. Throws Error kInvalidArgument for experts that the model
  /// does not have.
  FillCount fill_from(std::span<const Resident> residents);
  /// Queues at most `budget_bytes` into empty slots: first experts that decode has used, the latest first, as
  /// LRU would have kept them, then those that fill_from() was given. Others stay out: nobody has asked for
  /// them.
  FillCount fill_idle(size_t budget_bytes);
  /// What the slots of all pools hold, in the order of fill_from().
  std::vector<Resident> residency();

 private:
  /// What belongs to one pool.
  struct PoolMemory {
    Buffer snapshot;       // pinned: the arrays of the map as they were
    Buffer host_ids, ids;  // [most_slots]; the first is pinned
    std::unique_ptr<OwnedPlan> plan;
  };
  void read_maps(std::string_view why);
  SlotMapView snapshot(size_t pool) const;
  /// The last of `wanted` (ids of the pool's map) that are absent and find an empty slot, at most `most`.
  FillCount fill(size_t pool, const std::vector<int32_t>& wanted, size_t most);
  int32_t id_in_pool(const Resident& resident) const;

  ExpertState& state_;
  std::vector<PoolMemory> memory_;  // of each pool
  std::vector<std::vector<int32_t>>
      warm_;  // of each pool: what fill_from() was given last, as ids of its map
};

}  // namespace sluice
