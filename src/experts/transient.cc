// The host version of transient routing.
#include "experts/transient.h"

#include <algorithm>

namespace sluice {

void route_transient(Stream& stream, const SlotMapView& map, int32_t layer, const int32_t* ids, int64_t n,
                     int32_t first_slot, int32_t ring, int32_t* row_of, const CopyPlan& plan,
                     TransientCounters* counters) {
  const int32_t experts = map.shape.experts;
  stream.launch(
      {.name = "route_transient",
       .reads = {map.range(), range_of(ids, n), range_of(counters, 1)},
       .writes = {range_of(row_of, experts), range_of(plan.dst_slot, plan.capacity),
                  range_of(plan.src_row, plan.capacity), range_of(plan.count, 1), range_of(counters, 1)}},
      [=](const HostContext&) {
        constexpr int32_t kWanted = -2;
        std::fill(row_of, row_of + experts, -1);
        ++counters->calls;
        for (int64_t i = 0; i < n; ++i) {
          if (ids[i] < 0) continue;
          ++counters->routed;
          row_of[ids[i]] = kWanted;
        }
        int32_t count = 0;
        for (int32_t e = 0; e < experts; ++e) {
          if (row_of[e] != kWanted) continue;
          ++counters->distinct;
          row_of[e] = map.resident(map.flat(layer, e));
          if (row_of[e] >= 0) continue;
          ++counters->misses;
          if (count == ring || count == plan.capacity) {
            ++counters->overflows;
            continue;
          }
          row_of[e] = first_slot + count;
          plan.dst_slot[count] = row_of[e];
          plan.src_row[count] = e;
          ++count;
        }
        *plan.count = count;
      });
}

}  // namespace sluice
