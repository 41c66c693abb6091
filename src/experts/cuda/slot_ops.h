// Launchers of the slot map's CUDA kernels. Arguments and results are those of the operation of the same name
// in experts/slot_ops.h; experts/slot_map_ref.h defines what each does to the arrays, element by element. The
// search index of the host version is left alone: a kernel finds victims by reading all slots at once.
#pragma once

#include <optional>

#include "device/stream.h"
#include "experts/fetch_rule.h"
#include "experts/slot_map.h"

namespace sluice::cuda {

void slot_reset(const CudaContext& cuda, const SlotMapView& map, int32_t slots);
/// `rule`: as ensure_capped, with cpu_ids [n]; else as ensure.
void slot_ensure(const CudaContext& cuda, const SlotMapView& map, int32_t layer, int32_t* ids, int64_t n,
                 const std::optional<FetchRule>& rule, int32_t* cpu_ids, const CopyPlan& plan);
void slot_install_predictions(const CudaContext& cuda, const SlotMapView& map, int32_t layer,
                              const int32_t* ids, int64_t n, const int32_t* most, const CopyPlan& plan);
void slot_invalidate(const CudaContext& cuda, const SlotMapView& map, int32_t first_slot, int32_t count);
void slot_begin_region(const CudaContext& cuda, const SlotMapView& map, int32_t region_slots,
                       const int32_t* layers, int64_t n);
void slot_leave_evictable(const CudaContext& cuda, const SlotMapView& map, int32_t count);
void slot_release_layer(const CudaContext& cuda, const SlotMapView& map, int32_t layer);
void slot_end_region(const CudaContext& cuda, const SlotMapView& map);
void slot_adopt(const CudaContext& cuda, const SlotMapView& map, int32_t layer, const int32_t* ids, int64_t n,
                const int32_t* region_slot_of, const CopyPlan& plan);
void slot_materialise(const CudaContext& cuda, const SlotMapView& map, int32_t layer, int32_t first_slot,
                      const CopyPlan& plan);
void slot_resize(const CudaContext& cuda, const SlotMapView& map, int32_t slots, int32_t min_slots);
void slot_fill(const CudaContext& cuda, const SlotMapView& map, const int32_t* ids, int64_t n,
               const CopyPlan& plan);
void slot_count_residents(const CudaContext& cuda, const SlotMapView& map, int32_t first_slot,
                          int64_t* counts);
void slot_clear_status(const CudaContext& cuda, const SlotMapView& map);

}  // namespace sluice::cuda
