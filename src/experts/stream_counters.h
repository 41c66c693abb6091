// What a streaming pass brought over the link that was there already.
#pragma once

#include <cstdint>

#include "device/stream.h"
#include "experts/expert_set.h"
#include "experts/slot_map.h"

namespace sluice {

/// Of one layer, over all streaming passes; in device memory.
struct StreamCounters {
  uint64_t again = 0;  // experts that were streamed although a slot held them
};

/// Counts the experts in `streamed` that also lie in a slot.
void count_streamed_again(Stream& stream, const SlotMapView& map, int32_t layer, const ExpertSet& streamed,
                          StreamCounters* counters);

}  // namespace sluice
