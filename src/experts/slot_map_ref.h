// The functions on a slot map as plain scans over its arrays: the definition of what slot_functions.h
// computes.
//
// Same names, arguments and results as there. They read and write the arrays up to `listed` and nothing else;
// a map that they have written has no valid index, so a map is used with one kind only.
#pragma once

#include <cstdint>

#include "experts/fetch_rule.h"
#include "experts/slot_map.h"

namespace sluice::slot_map_ref {

SlotStatus reset(const SlotMapView& map, int32_t slots);
SlotStatus ensure(const SlotMapView& map, int32_t layer, int32_t* ids, int64_t n, const CopyPlan& plan);
SlotStatus ensure_capped(const SlotMapView& map, int32_t layer, int32_t* ids, int64_t n,
                         const FetchRule& rule, int32_t* cpu_ids, const CopyPlan& plan);
SlotStatus install_predictions(const SlotMapView& map, int32_t layer, const int32_t* ids, int64_t n,
                               int32_t most, const CopyPlan& plan);
SlotStatus invalidate(const SlotMapView& map, int32_t first_slot, int32_t count);
SlotStatus begin_region(const SlotMapView& map, int32_t region_slots, const int32_t* layers, int64_t n);
SlotStatus leave_evictable(const SlotMapView& map, int32_t count);
SlotStatus release_layer(const SlotMapView& map, int32_t layer);
SlotStatus end_region(const SlotMapView& map);
SlotStatus adopt(const SlotMapView& map, int32_t layer, const int32_t* ids, int64_t n,
                 const int32_t* region_slot_of, const CopyPlan& plan);
SlotStatus materialise(const SlotMapView& map, int32_t layer, int32_t first_slot, const CopyPlan& plan);
SlotStatus resize(const SlotMapView& map, int32_t slots, int32_t min_slots);
SlotStatus fill(const SlotMapView& map, const int32_t* ids, int64_t n, const CopyPlan& plan);

}  // namespace sluice::slot_map_ref
