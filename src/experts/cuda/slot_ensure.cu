// ensure and install_predictions on the device: one block each, no host wait, shapes that depend on sizes
// alone.
#include "base/error.h"
#include "experts/cuda/slot_block.cuh"
#include "experts/cuda/slot_ops.h"
#include "kernels/cuda/launch.cuh"

namespace sluice::cuda {
namespace {

/// The arguments of a call as a kernel takes them.
struct EnsureCall {
  SlotMapView map;
  int32_t layer;
  int32_t* ids;
  int64_t n;
  bool capped;
  FetchRule rule;
  int32_t* cpu_ids;
  CopyPlan plan;
};

__device__ int32_t resident(const SlotMapView& map, int32_t id) {
  const int32_t slot = map.slot_of[id];
  return slot >= map.header->floor ? slot : -1;
}

__device__ void give_up(const EnsureCall& c, SlotError code, int32_t layer, int64_t detail) {
  for (int64_t i = threadIdx.x; i < c.n; i += kSlotThreads) {
    c.ids[i] = -1;
    if (c.capped) c.cpu_ids[i] = -1;
  }
  if (threadIdx.x != 0) return;
  *c.plan.count = 0;
  keep_failure(c.map, code, layer, detail);
}

/// Sets of experts of one call, a bit each, and its sums. Written before a barrier, read after it.
struct EnsureSets {
  uint32_t missed[kMaxExperts / 32], fetched[kMaxExperts / 32];
  int32_t routed, predicted;
};

/// How many of `set` are below this thread's expert.
__device__ int32_t rank_in(const uint32_t* set) {
  int32_t before = __popc(set[warp_id()] & ((1u << lane_id()) - 1));
  for (int w = 0; w < warp_id(); ++w) before += __popc(set[w]);
  return before;
}

/// Whether this thread's missing expert is one of the `fetches` that were active most recently, ties to the
/// lower id.
__device__ bool is_fetched(const EnsureCall& c, const EnsureSets& sets, bool missing, int32_t misses,
                           int32_t fetches) {
  if (!missing || fetches == misses) return missing;
  const auto e = static_cast<int32_t>(threadIdx.x);
  const int64_t own = c.map.recency[c.map.flat(c.layer, e)];
  int32_t before = 0;
  for (int32_t other = 0; other < c.map.shape.experts; ++other) {
    if ((sets.missed[other / 32] >> (other % 32) & 1u) == 0) continue;
    const int64_t recency = c.map.recency[c.map.flat(c.layer, other)];
    before += recency > own || (recency == own && other < e);
  }
  return before < fetches;
}

/// Sets block.experts to the ids of the call and counts them; false where one is no expert. Ends with a
/// barrier.
__device__ bool read_ids(SlotBlock& block, EnsureSets& sets, const EnsureCall& c) {
  if (threadIdx.x < kMaxExperts / 32) block.experts[threadIdx.x] = 0;
  if (threadIdx.x == 0) sets.routed = sets.predicted = 0;
  __syncthreads();
  bool bad = false;
  int32_t routed = 0;
  for (int64_t i = threadIdx.x; i < c.n; i += kSlotThreads) {
    const int32_t id = c.ids[i];
    bad = bad || id < -1 || id >= c.map.shape.experts;
    if (id < 0 || id >= c.map.shape.experts) continue;
    ++routed;
    atomicOr(&block.experts[id / 32], 1u << (id % 32));
  }
  if (routed > 0) atomicAdd(&sets.routed, routed);
  return __syncthreads_or(bad) == 0;
}

/// Slots that can go, all of them.
__device__ int32_t count_victims(SlotBlock& block, const SlotMapView& map, int64_t clock) {
  int32_t own = 0;
  for (int32_t s = map.header->floor + static_cast<int32_t>(threadIdx.x); s < map.header->slots;
       s += kSlotThreads) {
    own += map.last_use[s] != clock && map.listed[s] == 0;
  }
  return sum_of(block, own);
}

/// Behind the barrier that follows the installs.
__device__ void rewrite_ids(const EnsureSets& sets, const EnsureCall& c) {
  int32_t hits = 0;
  for (int64_t i = threadIdx.x; i < c.n; i += kSlotThreads) {
    const int32_t e = c.ids[i];
    if (c.capped) c.cpu_ids[i] = -1;
    if (e < 0) continue;
    const uint32_t bit = 1u << (e % 32);
    const bool missed = (sets.missed[e / 32] & bit) != 0;
    hits += !missed;
    if (missed && (sets.fetched[e / 32] & bit) == 0) {
      c.cpu_ids[i] = e;
      c.ids[i] = -1;
    } else {
      c.ids[i] = c.map.slot_of[c.map.flat(c.layer, e)];
    }
  }
  if (hits == 0) return;
  atomicAdd(reinterpret_cast<unsigned long long*>(&c.map.counters[c.layer].routed_hits),
            static_cast<unsigned long long>(hits));
}

__device__ void count_call(const EnsureCall& c, const SlotBlock& block, const EnsureSets& sets,
                           int32_t misses, int32_t fetches) {
  int32_t distinct = 0;
  for (int w = 0; w < kMaxExperts / 32; ++w) distinct += __popc(block.experts[w]);
  LayerCounters& counters = c.map.counters[c.layer];
  *c.plan.count = fetches;
  ++counters.calls;
  counters.routed += static_cast<uint64_t>(sets.routed);
  counters.distinct += static_cast<uint64_t>(distinct);
  counters.hits += static_cast<uint64_t>(distinct - misses);
  counters.misses += static_cast<uint64_t>(misses);
  counters.fetched += static_cast<uint64_t>(fetches);
  counters.stalls += fetches > 0 ? 1 : 0;
  counters.predicted_used += static_cast<uint64_t>(sets.predicted);
}

// Barriers are what a call consists of: four without misses, one more for each victim and three around them.
__global__ void __launch_bounds__(kSlotThreads) ensure_kernel(const EnsureCall c) {
  __shared__ SlotBlock block;
  __shared__ EnsureSets sets;
  let_next_begin();
  wait_for_previous();
  const SlotMapView& map = c.map;
  SlotMapHeader& header = *map.header;
  if (c.layer < 0 || c.layer >= map.shape.layers) return give_up(c, SlotError::kBadLayer, -1, c.layer);
  if (!read_ids(block, sets, c)) {
    const int32_t id = c.ids[collect_ids(block, map, c.ids, c.n)];
    __syncthreads();
    return give_up(c, SlotError::kBadId, c.layer, id);
  }
  const auto e = static_cast<int32_t>(threadIdx.x);
  const bool active = e < map.shape.experts && names(block, e);
  const int32_t slot = active ? resident(map, map.flat(c.layer, e)) : -1;
  const bool missing = active && slot < 0;
  const uint32_t missing_votes = __ballot_sync(~0u, missing);
  if (lane_id() == 0) sets.missed[warp_id()] = missing_votes;
  // Stamped before the search, so that no hit of this call is a victim; undone where the call fails.
  const int32_t turn_before = header.turn;
  const int64_t step_before = header.step, clock = header.clock + 1;
  const int64_t step = step_before + (c.layer <= turn_before ? 1 : 0);
  const int64_t use_before = slot >= 0 ? map.last_use[slot] : 0;
  if (slot >= 0) map.last_use[slot] = clock;
  if (slot >= 0 && use_before == kPredictedSlot) atomicAdd(&sets.predicted, 1);
  const int32_t misses = __syncthreads_count(missing);
  const int32_t fetches = c.capped ? c.rule.fetches(misses) : misses;
  const bool mine = is_fetched(c, sets, missing, misses, fetches);
  const uint32_t fetched_votes = __ballot_sync(~0u, mine);
  if (lane_id() == 0) sets.fetched[warp_id()] = fetched_votes;
  if (e == 0) {  // victims are ranked by the turn that begins now
    header.turn = c.layer;
    header.step = step;
  }
  __syncthreads();
  if (fetches > 0) {
    const int32_t found =
        find_victims(block, map, header.floor, min(fetches, c.plan.capacity),
                     [&](int32_t s) { return map.last_use[s] != clock && map.listed[s] == 0; });
    if (found < fetches) {
      const int32_t free = count_victims(block, map, clock);
      if (slot >= 0) map.last_use[slot] = use_before;
      if (e == 0) {
        header.turn = turn_before;
        header.step = step_before;
      }
      return free < fetches ? give_up(c, SlotError::kNoEvictableSlot, c.layer, fetches - free)
                            : give_up(c, SlotError::kPlanFull, c.layer, fetches);
    }
  }
  if (e == 0) {
    header.clock = clock;
    count_call(c, block, sets, misses, fetches);
  }
  if (slot >= 0) map.used_step[slot] = step;
  if (active) map.recency[map.flat(c.layer, e)] = clock;
  if (mine) {
    const int32_t at = rank_in(sets.fetched), id = map.flat(c.layer, e);
    if (map.slot_of[id] >= 0) empty_slot(map, map.slot_of[id]);
    empty_slot(map, block.victims[at]);
    map.slot_of[id] = block.victims[at];
    map.owner_of[block.victims[at]] = id;
    map.last_use[block.victims[at]] = clock;
    map.used_step[block.victims[at]] = step;
    add_entry(c.plan, at, block.victims[at], e);
  }
  __syncthreads();
  rewrite_ids(sets, c);
}

__global__ void __launch_bounds__(kSlotThreads)
    install_kernel(const SlotMapView map, int32_t layer, const int32_t* ids, int64_t n,
                   const int32_t* most_of, const CopyPlan plan) {
  __shared__ SlotBlock block;
  __shared__ int32_t first_at[kMaxExperts], wanted[kMaxExperts];
  const auto fail = [&](SlotError code, int32_t of_layer, int64_t detail) {
    if (threadIdx.x != 0) return;
    *plan.count = 0;
    keep_failure(map, code, of_layer, detail);
  };
  if (layer < 0 || layer >= map.shape.layers) return fail(SlotError::kBadLayer, -1, layer);
  const int64_t bad = collect_ids(block, map, ids, n);
  if (bad < n) return fail(SlotError::kBadId, layer, ids[bad]);
  const auto e = static_cast<int32_t>(threadIdx.x);
  first_at[e] = INT32_MAX;
  __syncthreads();
  for (int64_t i = e; i < n; i += kSlotThreads) {
    if (ids[i] >= 0) atomicMin(&first_at[ids[i]], static_cast<int32_t>(i));
  }
  __syncthreads();
  const int32_t most = max(0, *most_of);
  int32_t entries = 0;
  for (int64_t begin = 0; begin < n && entries < most; begin += kSlotThreads) {
    const int64_t i = begin + e;
    const int32_t id = i < n ? ids[i] : -1;
    const bool absent = id >= 0 && first_at[id] == i && resident(map, map.flat(layer, id)) < 0;
    const int32_t at = entries + rank_of(block, absent);
    if (absent && at < most) wanted[at] = id;
    entries = min(most, entries + block.total);
    __syncthreads();
  }
  if (entries > plan.capacity) return fail(SlotError::kPlanFull, layer, entries);
  const auto may_go = [&](int32_t s) {
    if (map.last_use[s] == map.header->clock || map.listed[s] != 0) return false;
    const int32_t owner = map.owner_of[s];
    return owner < 0 || owner / map.shape.experts != layer || !names(block, owner % map.shape.experts);
  };
  const int32_t found = entries > 0 ? find_victims(block, map, map.header->floor, entries, may_go) : 0;
  __syncthreads();
  if (e < found) {
    give_slot(map, block.victims[e], map.flat(layer, wanted[e]), kPredictedSlot);
    add_entry(plan, e, block.victims[e], wanted[e]);
  }
  if (e != 0) return;
  *plan.count = found;
  map.counters[layer].predicted += static_cast<uint64_t>(found);
}

}  // namespace

void slot_ensure(const CudaContext& cuda, const SlotMapView& map, int32_t layer, int32_t* ids, int64_t n,
                 const std::optional<FetchRule>& rule, int32_t* cpu_ids, const CopyPlan& plan) {
  const EnsureCall call{map, layer, ids, n, rule.has_value(), rule.value_or(FetchRule{}), cpu_ids, plan};
  launch_behind(cuda, ensure_kernel, 1, kSlotThreads, call);
}

void slot_install_predictions(const CudaContext& cuda, const SlotMapView& map, int32_t layer,
                              const int32_t* ids, int64_t n, const int32_t* most, const CopyPlan& plan) {
  install_kernel<<<1, kSlotThreads, 0, cuda.stream>>>(map, layer, ids, n, most, plan);
}

}  // namespace sluice::cuda
