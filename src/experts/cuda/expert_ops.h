// Launchers of the CUDA kernels around the slot map: copies by plan, routes, forecasts, the audit. Arguments
// and results are those of the operations of the host backend beside which they are called.
#pragma once

#include <array>
#include <optional>

#include "device/stream.h"
#include "experts/arrivals.h"
#include "experts/audit.h"
#include "experts/expert_set.h"
#include "experts/fetch_rule.h"
#include "experts/forecast.h"
#include "experts/link_meter.h"
#include "experts/slot_log.h"
#include "experts/slot_map.h"
#include "experts/stream_counters.h"
#include "experts/transient.h"

namespace sluice::cuda {

/// Sets values [n] to `value`.
void fill_i32(const CudaContext& cuda, int32_t* values, int64_t n, int32_t value);
void zero(const CudaContext& cuda, void* memory, size_t bytes);
/// where [experts]: slot + e - first for e in [first, last) that are not in `nowhere`, else -1.
void tile_slots(const CudaContext& cuda, int32_t* where, int64_t experts, int32_t first, int32_t last,
                int32_t slot, const ExpertSet& nowhere);

void gather_rows(const CudaContext& cuda, const CopyPlan& plan, const std::byte* source, std::byte* target,
                 size_t row_bytes);
void gather_layer_rows(const CudaContext& cuda, const CopyPlan& plan, const std::byte* const* bases,
                       int32_t experts, std::byte* target, size_t row_bytes);

/// Rows [first, last) of the plan, which lie one after the other in `data`, into their slots.
void place_rows(const CudaContext& cuda, const CopyPlan& plan, int64_t first, int64_t last,
                const std::byte* data, std::byte* slots, size_t row_bytes);

void route_transient(const CudaContext& cuda, const SlotMapView& map, int32_t layer, const int32_t* ids,
                     int64_t n, int32_t first_slot, int32_t ring, int32_t* row_of, const CopyPlan& plan,
                     TransientCounters* counters, const std::optional<FetchRule>& rule, int32_t* cpu_ids);

void rank_forecast(const CudaContext& cuda, const float* logits, int64_t rows, int64_t experts, int64_t top_k,
                   int32_t* ids);
void count_forecast(const CudaContext& cuda, const int32_t* ids, int64_t n, int64_t experts,
                    const int32_t* forecast, ForecastCounters* counters);

void count_arrivals(const CudaContext& cuda, const int32_t* ids, int64_t n, const CopyPlan& predicted,
                    const CopyPlan& demand, ArrivalCounters* counters);
void count_streamed_again(const CudaContext& cuda, const SlotMapView& map, int32_t layer,
                          const ExpertSet& streamed, StreamCounters* counters);

/// `bases` [layers]: where the host rows of each layer begin; `log` may be null. Which of many violations are
/// named is left to chance.
void audit(const CudaContext& cuda, const SlotMapView& map, const std::byte* slots, size_t row_bytes,
           const std::byte* const* bases, const SlotHistory* log, AuditResult* result);

void reset_slot_log(const CudaContext& cuda, void* memory, size_t bytes);
/// `memory`: the sequence number (64 bytes), then a history for each slot. first_id -1: owners are what the
/// map says.
void note_writes(const CudaContext& cuda, void* memory, SlotWrite cause, const SlotMapView& map,
                 int32_t first_id, const CopyPlan& plan);
void note_range(const CudaContext& cuda, void* memory, SlotWrite cause, int32_t first, int32_t count);

}  // namespace sluice::cuda
