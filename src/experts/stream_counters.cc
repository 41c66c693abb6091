// The host version of a streaming pass's counters.
#include "experts/stream_counters.h"

#include "experts/cuda/expert_ops.h"

namespace sluice {

void count_streamed_again(Stream& stream, const SlotMapView& map, int32_t layer, const ExpertSet& streamed,
                          StreamCounters* counters) {
  stream.launch_both(
      {.name = "count streamed again",
       .reads = {map.range(), range_of(counters, 1)},
       .writes = {range_of(counters, 1)}},
      [=](const HostContext&) {
        streamed.for_each(
            [&](int32_t expert) { counters->again += map.slot_of[map.flat(layer, expert)] >= 0; });
      },
      SLUICE_CUDA_OP(cuda::count_streamed_again, map, layer, streamed, counters));
}

void route_to_cpu(Stream& stream, const ExpertSet& on_cpu, const int32_t* ids, int64_t n, int32_t* cpu_ids,
                  StreamCounters* counters) {
  stream.launch({.name = "route to the CPU",
                 .reads = {range_of(ids, n), range_of(counters, 1)},
                 .writes = {range_of(cpu_ids, n), range_of(counters, 1)}},
                [=](const HostContext&) {
                  ExpertSet left = on_cpu;
                  for (int64_t i = 0; i < n; ++i) {
                    const bool chosen = ids[i] >= 0 && on_cpu.contains(ids[i]);
                    cpu_ids[i] = chosen ? ids[i] : -1;
                    if (!chosen) continue;
                    counters->cpu += left.contains(ids[i]);
                    left.erase(ids[i]);
                    ++counters->cpu_rows;
                  }
                });
}

}  // namespace sluice
