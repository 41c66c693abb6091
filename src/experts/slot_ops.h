// The functions on a slot map as operations of a stream.
//
// Each is one launch that declares the whole map as read and written. All that write maps belong on one
// stream, the compute stream. A failure goes to the map's status word (the first one stays) and is safe for
// what follows in the stream: the plan is empty, and an ensure's ids are all -1. The host looks with
// read_status() where it synchronises anyway. Pointers stay valid until the operation has run.
#pragma once

#include <cstdint>

#include "device/stream.h"
#include "experts/fetch_rule.h"
#include "experts/slot_map.h"

namespace sluice::slot_ops {

void reset(Stream& stream, const SlotMapView& map, int32_t slots);
void ensure(Stream& stream, const SlotMapView& map, int32_t layer, int32_t* ids, int64_t n,
            const CopyPlan& plan);
/// cpu_ids [n] is written, all -1 on failure.
void ensure_capped(Stream& stream, const SlotMapView& map, int32_t layer, int32_t* ids, int64_t n,
                   const FetchRule& rule, int32_t* cpu_ids, const CopyPlan& plan);
/// `most` [1] is read when the operation runs, so a captured step follows its changes.
void install_predictions(Stream& stream, const SlotMapView& map, int32_t layer, const int32_t* ids, int64_t n,
                         const int32_t* most, const CopyPlan& plan);
void invalidate(Stream& stream, const SlotMapView& map, int32_t first_slot, int32_t count);
/// layers [n], or null for all.
void begin_region(Stream& stream, const SlotMapView& map, int32_t region_slots, const int32_t* layers,
                  int64_t n);
void leave_evictable(Stream& stream, const SlotMapView& map, int32_t count);
void release_layer(Stream& stream, const SlotMapView& map, int32_t layer);
void end_region(Stream& stream, const SlotMapView& map);
/// region_slot_of [experts] or null.
void adopt(Stream& stream, const SlotMapView& map, int32_t layer, const int32_t* ids, int64_t n,
           const int32_t* region_slot_of, const CopyPlan& plan);
void materialise(Stream& stream, const SlotMapView& map, int32_t layer, int32_t first_slot,
                 const CopyPlan& plan);
void resize(Stream& stream, const SlotMapView& map, int32_t slots, int32_t min_slots);
void fill(Stream& stream, const SlotMapView& map, const int32_t* ids, int64_t n, const CopyPlan& plan);

/// Copies the status word to `status` in host memory; valid once the stream is synchronised.
void read_status(Stream& stream, const SlotMapView& map, SlotStatus* status);
/// counts[0] = slots that hold an expert, counts[1] = those of them from `first_slot` on.
void count_residents(Stream& stream, const SlotMapView& map, int32_t first_slot, int64_t* counts);
void clear_status(Stream& stream, const SlotMapView& map);

}  // namespace sluice::slot_ops
