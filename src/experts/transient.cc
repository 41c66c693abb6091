// The host version of transient routing.
#include "experts/transient.h"
#include "experts/cuda/expert_ops.h"

#include <algorithm>
#include <vector>

namespace sluice {
namespace {

constexpr int32_t kMissing = -2, kOnCpu = -3;  // in row_of, while it is made

struct Call {
  SlotMapView map;
  int32_t layer;
  const int32_t* ids;
  int64_t n;
  int32_t first_slot, ring;
  int32_t* row_of;
  CopyPlan plan;
  TransientCounters* counters;
};

// Every routed expert: its slot, or kMissing. Returns the missing ones in ascending order.
std::vector<int32_t> look_up(const Call& c, std::vector<int32_t>& ids_of) {
  std::fill(c.row_of, c.row_of + c.map.shape.experts, -1);
  ++c.counters->calls;
  for (int64_t i = 0; i < c.n; ++i) {
    if (c.ids[i] < 0) continue;
    ++c.counters->routed;
    ++ids_of[static_cast<size_t>(c.ids[i])];
  }
  std::vector<int32_t> missing;
  for (int32_t e = 0; e < c.map.shape.experts; ++e) {
    if (ids_of[static_cast<size_t>(e)] == 0) continue;
    ++c.counters->distinct;
    c.row_of[e] = c.map.resident(c.map.flat(c.layer, e));
    if (c.row_of[e] >= 0) continue;
    c.row_of[e] = kMissing;
    missing.push_back(e);
  }
  c.counters->misses += missing.size();
  return missing;
}

void leave_to_cpu(const Call& c, const FetchRule& rule, const std::vector<int32_t>& ids_of,
                  std::vector<int32_t> missing) {
  const auto fetches = rule.fetches(static_cast<int32_t>(missing.size()));
  std::stable_sort(missing.begin(), missing.end(), [&](int32_t a, int32_t b) {
    return ids_of[static_cast<size_t>(a)] > ids_of[static_cast<size_t>(b)];
  });
  for (auto e = missing.begin() + fetches; e != missing.end(); ++e) c.row_of[*e] = kOnCpu;
  c.counters->cpu += missing.size() - static_cast<size_t>(fetches);
}

void plan_misses(const Call& c, const std::vector<int32_t>& missing) {
  int32_t count = 0;
  for (const int32_t e : missing) {
    if (c.row_of[e] == kOnCpu) {
      c.row_of[e] = -1;
    } else if (count == c.ring || count == c.plan.capacity) {
      ++c.counters->overflows;
      c.row_of[e] = -1;
    } else {
      c.row_of[e] = c.first_slot + count;
      c.plan.dst_slot[count] = c.row_of[e];
      c.plan.src_row[count] = e;
      ++count;
    }
  }
  *c.plan.count = count;
}

}  // namespace

void route_transient(Stream& stream, const SlotMapView& map, int32_t layer, const int32_t* ids, int64_t n,
                     int32_t first_slot, int32_t ring, int32_t* row_of, const CopyPlan& plan,
                     TransientCounters* counters, std::optional<FetchRule> rule, int32_t* cpu_ids) {
  const Call call{map, layer, ids, n, first_slot, ring, row_of, plan, counters};
  stream.launch_both(
      {.name = "route_transient",
       .reads = {map.range(), range_of(ids, n), range_of(counters, 1)},
       .writes = {range_of(row_of, map.shape.experts), range_of(plan.dst_slot, plan.capacity),
                  range_of(plan.src_row, plan.capacity), range_of(plan.count, 1), range_of(counters, 1),
                  range_of(cpu_ids, rule ? n : 0)}},
      [=](const HostContext&) {
        std::vector<int32_t> ids_of(static_cast<size_t>(call.map.shape.experts));
        const std::vector<int32_t> missing = look_up(call, ids_of);
        if (rule) {
          leave_to_cpu(call, *rule, ids_of, missing);
          for (int64_t i = 0; i < call.n; ++i) {
            const int32_t e = call.ids[i];
            cpu_ids[i] = e >= 0 && call.row_of[e] == kOnCpu ? e : -1;
          }
        }
        plan_misses(call, missing);
      },
      SLUICE_CUDA_OP(cuda::route_transient, map, layer, ids, n, first_slot, ring, row_of, plan, counters,
                     rule, cpu_ids));
}

}  // namespace sluice
