// The host version of a streaming pass's counters.
#include "experts/stream_counters.h"

namespace sluice {

void count_streamed_again(Stream& stream, const SlotMapView& map, int32_t layer, const ExpertSet& streamed,
                          StreamCounters* counters) {
  stream.launch({.name = "count streamed again",
                 .reads = {map.range(), range_of(counters, 1)},
                 .writes = {range_of(counters, 1)}},
                [=](const HostContext&) {
                  streamed.for_each(
                      [&](int32_t expert) { counters->again += map.slot_of[map.flat(layer, expert)] >= 0; });
                });
}

}  // namespace sluice
