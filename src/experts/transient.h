// Routes of a prompt to resident slots and to a transient ring: prefill that leaves the pool alone.
#pragma once

#include <optional>

#include "device/stream.h"
#include "experts/fetch_rule.h"
#include "experts/slot_map.h"

namespace sluice {

/// What a layer's touched passes did, since the start.
struct TransientCounters {
  uint64_t calls = 0, routed = 0;     // calls, ids without padding
  uint64_t distinct = 0, misses = 0;  // experts a call, and those that were not resident
  uint64_t cpu = 0;                   // of the misses, those left to the CPU
  uint64_t overflows = 0;             // misses without a ring slot: must stay 0
};

/// row_of [experts] = the slot of each expert among ids [n] (-1 is padding): its resident slot, or the next
/// of the ring slots [first_slot, first_slot + ring), with an entry in `plan`; -1 for all others. Neither the
/// clock nor last_use moves: a long prompt does not flush what decode uses. With a `rule` only
/// rule.fetches(misses) of the misses get a ring slot, those with the most ids, ties to the lower expert; the
/// ids of the others stand in cpu_ids [n], which holds -1 elsewhere.
void route_transient(Stream& stream, const SlotMapView& map, int32_t layer, const int32_t* ids, int64_t n,
                     int32_t first_slot, int32_t ring, int32_t* row_of, const CopyPlan& plan,
                     TransientCounters* counters, std::optional<FetchRule> rule = std::nullopt,
                     int32_t* cpu_ids = nullptr);

}  // namespace sluice
