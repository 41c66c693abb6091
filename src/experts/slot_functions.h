// The functions on a slot map: the fast versions, which serve. slot_map_ref.h has the same ones as plain
// scans, and defines their results element by element.
//
// All of them work on memory that the calling processor can address, take no lock and allocate nothing
// (except save_residency and check_integrity). Where one fails it returns why, sets the plan's count to 0 and
// leaves everything else as it was.
//
// A victim is the first of: the lowest empty slot; the lowest predicted slot; what the policy says. Never a
// slot with last_use == clock, below the floor, or listed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experts/fetch_rule.h"
#include "experts/slot_map.h"

namespace sluice {

/// An expert that is resident, for saving and restoring.
struct Resident {
  int32_t layer = 0, expert = 0;
  bool operator==(const Resident&) const = default;
};

namespace slot_map {

/// The map as new, with `slots` empty slots (kBadSlotCount outside [1, max_slots]).
SlotStatus reset(const SlotMapView& map, int32_t slots);

/// Makes the experts `ids` [n] of `layer` resident and rewrites them to their slots. Ids may repeat; -1 is
/// padding and stays. Hits are stamped, then misses take victims in ascending order of their id; their
/// entries are the plan.
SlotStatus ensure(const SlotMapView& map, int32_t layer, int32_t* ids, int64_t n, const CopyPlan& plan);

/// ensure() where only rule.fetches(misses) of the misses get a slot: those that were active most recently,
/// ties to the lower id. The others become -1 in `ids`, and stand in cpu_ids [n], which holds -1 elsewhere.
SlotStatus ensure_capped(const SlotMapView& map, int32_t layer, int32_t* ids, int64_t n,
                         const FetchRule& rule, int32_t* cpu_ids, const CopyPlan& plan);

/// Gives slots to at most `most` of the experts `ids` [n] (in order of preference; -1 and repeats are
/// skipped) that are absent. They are the first to go afterwards; the clock stands still. Installs fewer
/// where victims run out. Experts named here are no victims.
SlotStatus install_predictions(const SlotMapView& map, int32_t layer, const int32_t* ids, int64_t n,
                               int32_t most, const CopyPlan& plan);

/// Empties slots [first_slot, first_slot + count). kBadRange outside [0, S), kListedSlot where a pass needs
/// one.
SlotStatus invalidate(const SlotMapView& map, int32_t first_slot, int32_t count);

/// Starts a pass: empties [0, region_slots), raises the floor there, and lists the residents of `layers` [n]
/// (null: of all layers). kRegionRunning inside another pass.
SlotStatus begin_region(const SlotMapView& map, int32_t region_slots, const int32_t* layers, int64_t n);
/// Unlists the longest unused residents until `count` slots above the floor can be evicted: what a decode
/// step between the layers of the pass takes. Scans all slots, once a pass.
SlotStatus leave_evictable(const SlotMapView& map, int32_t count);
/// The pass has used `layer`: its slots may be evicted again.
SlotStatus release_layer(const SlotMapView& map, int32_t layer);
/// Ends the pass: the region is empty and the pool's, nothing is listed. Without a pass it does nothing.
SlotStatus end_region(const SlotMapView& map);

/// Moves experts `ids` [n] of `layer` out of the region into slots above it, as a call of its own (clock +
/// 1). Where they lie says region_slot_of [experts] (-1: not there), or the map itself if that is null. Plan
/// entries are (slot, region slot), by ascending id, as many as find victims. Those resident already are
/// stamped; those that are nowhere are left out.
SlotStatus adopt(const SlotMapView& map, int32_t layer, const int32_t* ids, int64_t n,
                 const int32_t* region_slot_of, const CopyPlan& plan);

/// Puts expert e of `layer` into slot first_slot + e, for all of them, as a call of its own; plan of
/// `experts` rows. kListedSlot where a pass needs a slot of another layer in that range.
SlotStatus materialise(const SlotMapView& map, int32_t layer, int32_t first_slot, const CopyPlan& plan);

/// Sets S to `slots`; slots that go are unmapped, slots that come are empty. kBadSlotCount outside
/// [min_slots, max_slots], kRegionRunning inside a pass.
SlotStatus resize(const SlotMapView& map, int32_t slots, int32_t min_slots);

/// Gives empty slots, lowest first, to those of `ids` [n] (layer * experts + expert; -1 and repeats are
/// skipped) that are absent, as long as there are empty ones. last_use becomes kFirstClock for each, so on a
/// fresh map the first filled is evicted first: give the most valuable last. Source rows of the plan are such
/// ids. kPlanFull where n is above its capacity.
SlotStatus fill(const SlotMapView& map, const int32_t* ids, int64_t n, const CopyPlan& plan);

/// Residents at or above the floor by ascending (last_use, slot): the order for fill(). Where fewer slots are
/// free than there are entries, fill the last ones.
std::vector<Resident> save_residency(const SlotMapView& map);

/// Empty if all invariants hold and the index agrees with the arrays; else a line that names the first fault.
std::string check_integrity(const SlotMapView& map);

}  // namespace slot_map
}  // namespace sluice
