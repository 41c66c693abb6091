// What a streaming pass brought over the link though it was there, and what it left to the CPU.
#pragma once

#include <cstdint>

#include "device/stream.h"
#include "experts/expert_set.h"
#include "experts/slot_map.h"

namespace sluice {

/// Of one layer, over all streaming passes; in device memory.
struct StreamCounters {
  uint64_t again = 0;              // experts that were streamed although a slot held them
  uint64_t cpu = 0, cpu_rows = 0;  // experts that the CPU computed, once a chunk; (row, rank) pairs of them
};

/// Counts the experts in `streamed` that also lie in a slot.
void count_streamed_again(Stream& stream, const SlotMapView& map, int32_t layer, const ExpertSet& streamed,
                          StreamCounters* counters);

/// cpu_ids [n] = those of the ids [n] that are in `on_cpu`, -1 elsewhere.
void route_to_cpu(Stream& stream, const ExpertSet& on_cpu, const int32_t* ids, int64_t n, int32_t* cpu_ids,
                  StreamCounters* counters);

}  // namespace sluice
