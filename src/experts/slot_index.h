// The search index of a slot map: finds the next victim without a scan of the slots.
//
// A tournament tree over the slots, ordered by (last_use, slot): empty and predicted slots come first by
// their last_use alone. A change climbs towards the root and stops where the winner is another and stays; a
// touch of a slot that is not old stops after two levels on average. Under kScored a tree a layer stands
// beside it: inside a layer the order is the same, so the victim is the best of the layers' winners.
#pragma once

#include <cstdint>

#include "experts/slot_map.h"

namespace sluice::slot_index {

/// The next victim, -1 if none is left.
int32_t victim(const SlotMapView& map);

/// To be called after each change of last_use, listed or the floor's side of one slot, before the next one.
void update(const SlotMapView& map, int32_t slot);
/// The same for slots [first, first + count), in time linear in count; nothing else may be pending.
void update_range(const SlotMapView& map, int32_t first, int32_t count);
/// To be called after slot_of of (layer, expert) was set to -1, before the slot gets another owner.
void forget(const SlotMapView& map, int32_t id);
/// Builds all of it from the arrays.
void rebuild(const SlotMapView& map);

/// Whether the slot may be somebody's victim at some clock.
inline bool is_evictable(const SlotMapView& map, int32_t slot) {
  return slot >= map.header->floor && slot < map.header->slots && map.listed[slot] == 0;
}

/// The slot of the two that goes first; -1 loses.
inline int32_t older(const SlotMapView& map, int32_t a, int32_t b) {
  if (a < 0) return b;
  if (b < 0) return a;
  if (map.last_use[a] != map.last_use[b]) return map.last_use[a] < map.last_use[b] ? a : b;
  return a < b ? a : b;
}

}  // namespace sluice::slot_index
