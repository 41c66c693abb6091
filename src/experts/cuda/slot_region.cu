// The slot map's rarer operations on the device: passes, adoption, resizing, filling.
#include "experts/cuda/slot_block.cuh"
#include "experts/cuda/slot_ops.h"

namespace sluice::cuda {
namespace {

__device__ int32_t layer_of(const SlotMapView& map, int32_t slot) {
  return map.owner_of[slot] / map.shape.experts;
}

__device__ bool is_range(const SlotMapView& map, int64_t first, int64_t count) {
  return first >= 0 && count >= 0 && first + count <= map.header->slots;
}

/// For thread 0 alone.
__device__ void fail_once(const SlotMapView& map, SlotError code, int32_t layer, int64_t detail) {
  if (threadIdx.x == 0) keep_failure(map, code, layer, detail);
}
__device__ void fail_planned(const SlotMapView& map, const CopyPlan& plan, SlotError code, int32_t layer,
                             int64_t detail) {
  if (threadIdx.x == 0) *plan.count = 0;
  fail_once(map, code, layer, detail);
}

__global__ void __launch_bounds__(kSlotThreads) reset_kernel(const SlotMapView map, int32_t slots) {
  if (slots < 1 || slots > map.shape.max_slots) return fail_once(map, SlotError::kBadSlotCount, -1, slots);
  const auto t = static_cast<int32_t>(threadIdx.x);
  if (t == 0) {
    *map.header = {};
    map.header->clock = kFirstClock;
    map.header->slots = slots;
    map.header->turn = map.shape.layers - 1;
  }
  for (int32_t l = t; l < map.shape.layers; l += kSlotThreads) map.counters[l] = {};
  for (int32_t id = t; id < map.shape.layers * map.shape.experts; id += kSlotThreads) {
    map.slot_of[id] = -1;
    map.recency[id] = -1;
  }
  for (int32_t s = t; s < map.shape.max_slots; s += kSlotThreads) {
    map.owner_of[s] = -1;
    map.last_use[s] = kEmptySlot;
    map.used_step[s] = 0;
    map.listed[s] = 0;
  }
}

__global__ void __launch_bounds__(kSlotThreads)
    invalidate_kernel(const SlotMapView map, int32_t first, int32_t count) {
  __shared__ SlotBlock block;
  if (!is_range(map, first, count)) return fail_once(map, SlotError::kBadRange, -1, first);
  int64_t listed = first + int64_t{count};
  for (int32_t s = first + static_cast<int32_t>(threadIdx.x); s < first + count; s += kSlotThreads) {
    if (map.listed[s] != 0) listed = min(listed, static_cast<int64_t>(s));
  }
  listed = lowest_of(block, listed, first + int64_t{count});
  if (listed < first + count) return fail_once(map, SlotError::kListedSlot, -1, listed);
  for (int32_t s = first + static_cast<int32_t>(threadIdx.x); s < first + count; s += kSlotThreads)
    empty_slot(map, s);
}

__global__ void __launch_bounds__(kSlotThreads)
    begin_region_kernel(const SlotMapView map, int32_t region_slots, const int32_t* layers, int64_t n) {
  __shared__ SlotBlock block;
  __shared__ uint32_t wanted[kMaxMoeLayers / 32];
  if (map.header->region_running != 0) {
    return fail_once(map, SlotError::kRegionRunning, -1, map.header->floor);
  }
  if (!is_range(map, 0, region_slots)) return fail_once(map, SlotError::kBadRange, -1, region_slots);
  if (threadIdx.x < kMaxMoeLayers / 32) wanted[threadIdx.x] = layers == nullptr ? ~0u : 0u;
  __syncthreads();
  int64_t bad = n;
  for (int64_t i = threadIdx.x; layers != nullptr && i < n; i += kSlotThreads) {
    if (layers[i] < 0 || layers[i] >= map.shape.layers) {
      bad = min(bad, i);
    } else {
      atomicOr(&wanted[layers[i] / 32], 1u << (layers[i] % 32));
    }
  }
  bad = lowest_of(block, bad, n);
  if (bad < n) return fail_once(map, SlotError::kBadLayer, -1, layers[bad]);
  const auto t = static_cast<int32_t>(threadIdx.x);
  for (int32_t s = t; s < region_slots; s += kSlotThreads) empty_slot(map, s);
  for (int32_t s = region_slots + t; s < map.header->slots; s += kSlotThreads) {
    const int32_t layer = map.owner_of[s] >= 0 ? layer_of(map, s) : -1;
    map.listed[s] = layer >= 0 && (wanted[layer / 32] >> (layer % 32) & 1u) != 0;
  }
  if (t != 0) return;
  map.header->floor = region_slots;
  map.header->region_running = 1;
}

// The order of leave_evictable is (last_use, slot) under every policy.
__global__ void __launch_bounds__(kSlotThreads) leave_evictable_kernel(SlotMapView map, int32_t count) {
  __shared__ SlotBlock block;
  const auto t = static_cast<int32_t>(threadIdx.x);
  int32_t own = 0;
  for (int32_t s = map.header->floor + t; s < map.header->slots; s += kSlotThreads) own += map.listed[s] == 0;
  int32_t left = max(0, count - sum_of(block, own));
  map.shape.policy = SlotPolicy::kLru;
  while (left > 0) {
    const int32_t found = find_victims(block, map, map.header->floor, min(left, kMaxExperts),
                                       [&](int32_t s) { return map.listed[s] != 0; });
    if (t < found) map.listed[block.victims[t]] = 0;
    left = found == 0 ? 0 : left - found;
    __syncthreads();
  }
}

__global__ void __launch_bounds__(kSlotThreads) release_layer_kernel(const SlotMapView map, int32_t layer) {
  if (layer < 0 || layer >= map.shape.layers) return fail_once(map, SlotError::kBadLayer, -1, layer);
  for (int32_t s = static_cast<int32_t>(threadIdx.x); s < map.header->slots; s += kSlotThreads) {
    if (map.owner_of[s] >= 0 && layer_of(map, s) == layer) map.listed[s] = 0;
  }
}

__global__ void __launch_bounds__(kSlotThreads) end_region_kernel(const SlotMapView map) {
  if (map.header->region_running == 0) return;
  const auto t = static_cast<int32_t>(threadIdx.x);
  for (int32_t s = t; s < map.header->floor; s += kSlotThreads) empty_slot(map, s);
  for (int32_t s = t; s < map.header->slots; s += kSlotThreads) map.listed[s] = 0;
  __syncthreads();
  if (t != 0) return;
  map.header->floor = 0;
  map.header->region_running = 0;
}

__global__ void __launch_bounds__(kSlotThreads)
    adopt_kernel(const SlotMapView map, int32_t layer, const int32_t* ids, int64_t n,
                 const int32_t* region_slot_of, const CopyPlan plan) {
  __shared__ SlotBlock block;
  if (layer < 0 || layer >= map.shape.layers) return fail_planned(map, plan, SlotError::kBadLayer, -1, layer);
  const int64_t bad = collect_ids(block, map, ids, n);
  if (bad < n) return fail_planned(map, plan, SlotError::kBadId, layer, ids[bad]);
  const auto e = static_cast<int32_t>(threadIdx.x);
  const bool active = e < map.shape.experts && names(block, e);
  const int32_t id = map.flat(layer, active ? e : 0), floor = map.header->floor;
  const int32_t held = active ? map.slot_of[id] : -1;
  const bool stays = active && held >= floor;
  const int32_t source = !active || stays ? -1 : region_slot_of == nullptr ? held : region_slot_of[e];
  const int64_t wrong = lowest_of(block, source < -1 || source >= floor ? e : kMaxExperts, kMaxExperts);
  if (wrong < kMaxExperts) {
    const int32_t slot = region_slot_of == nullptr ? map.slot_of[map.flat(layer, static_cast<int32_t>(wrong))]
                                                   : region_slot_of[wrong];
    return fail_planned(map, plan, SlotError::kBadRange, layer, slot);
  }
  const bool moves = source >= 0;
  const int32_t at = rank_of(block, moves), moving = block.total;
  if (moving > plan.capacity) return fail_planned(map, plan, SlotError::kPlanFull, layer, moving);
  __syncthreads();
  if (e == 0) ++map.header->clock;
  __syncthreads();
  if (stays) touch_slot(map, held);
  __syncthreads();
  const int32_t found = find_victims(block, map, floor, moving, [&](int32_t s) {
    return map.last_use[s] != map.header->clock && map.listed[s] == 0;
  });
  if (moves && at < found) {
    give_slot(map, block.victims[at], id, map.header->clock);
    add_entry(plan, at, block.victims[at], source);
  }
  if (e == 0) *plan.count = found;
}

__global__ void __launch_bounds__(kSlotThreads)
    materialise_kernel(const SlotMapView map, int32_t layer, int32_t first_slot, const CopyPlan plan) {
  __shared__ SlotBlock block;
  const int32_t experts = map.shape.experts, last = first_slot + experts;
  const auto t = static_cast<int32_t>(threadIdx.x);
  if (layer < 0 || layer >= map.shape.layers) return fail_planned(map, plan, SlotError::kBadLayer, -1, layer);
  if (!is_range(map, first_slot, experts))
    return fail_planned(map, plan, SlotError::kBadRange, layer, first_slot);
  const int32_t own = first_slot + t;
  const bool needed = t < experts && map.listed[own] != 0 && layer_of(map, own) != layer;
  const int64_t listed = lowest_of(block, needed ? own : last, last);
  if (listed < last) return fail_planned(map, plan, SlotError::kListedSlot, layer, listed);
  if (experts > plan.capacity) return fail_planned(map, plan, SlotError::kPlanFull, layer, experts);
  if (t == 0) {
    ++map.header->clock;
    if (layer <= map.header->turn) ++map.header->step;
    map.header->turn = layer;
  }
  for (int32_t s = t; s < map.header->slots; s += kSlotThreads) {
    if (map.owner_of[s] < 0 || layer_of(map, s) != layer) continue;
    empty_slot(map, s);
    map.listed[s] = 0;
  }
  __syncthreads();
  if (t < experts) {
    give_slot(map, own, map.flat(layer, t), map.header->clock);
    add_entry(plan, t, own, t);
  }
  if (t == 0) *plan.count = experts;
}

__global__ void __launch_bounds__(kSlotThreads)
    resize_kernel(const SlotMapView map, int32_t slots, int32_t min_slots) {
  if (slots < 1 || slots < min_slots || slots > map.shape.max_slots) {
    return fail_once(map, SlotError::kBadSlotCount, -1, slots);
  }
  if (map.header->region_running != 0)
    return fail_once(map, SlotError::kRegionRunning, -1, map.header->floor);
  const auto t = static_cast<int32_t>(threadIdx.x);
  for (int32_t s = slots + t; s < map.header->slots; s += kSlotThreads) empty_slot(map, s);
  __syncthreads();
  if (t == 0) map.header->slots = slots;
}

// One thread: the list is walked in order, and each entry depends on those before it. Runs while nothing is
// asked for.
__global__ void fill_kernel(const SlotMapView map, const int32_t* ids, int64_t n, const CopyPlan plan) {
  for (int64_t i = 0; i < n; ++i) {
    if (ids[i] < -1 || ids[i] >= map.shape.layers * map.shape.experts) {
      return fail_planned(map, plan, SlotError::kBadId, -1, ids[i]);
    }
  }
  if (n > plan.capacity) return fail_planned(map, plan, SlotError::kPlanFull, -1, n);
  int32_t slot = map.header->floor, count = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (ids[i] == -1 || map.resident(ids[i]) >= 0) continue;
    while (slot < map.header->slots && (map.last_use[slot] != kEmptySlot || map.listed[slot] != 0)) ++slot;
    if (slot == map.header->slots) break;
    give_slot(map, slot, ids[i], kFirstClock);
    add_entry(plan, count++, slot, ids[i]);
  }
  *plan.count = count;
}

__global__ void __launch_bounds__(kSlotThreads)
    count_residents_kernel(const SlotMapView map, int32_t first_slot, int64_t* counts) {
  __shared__ SlotBlock block;
  int32_t all = 0, from_first = 0;
  for (int32_t s = static_cast<int32_t>(threadIdx.x); s < map.header->slots; s += kSlotThreads) {
    if (map.owner_of[s] < 0) continue;
    ++all;
    from_first += s >= first_slot;
  }
  all = sum_of(block, all);
  from_first = sum_of(block, from_first);
  if (threadIdx.x != 0) return;
  counts[0] = all;
  counts[1] = from_first;
}

__global__ void clear_status_kernel(const SlotMapView map) { map.header->status = {}; }

}  // namespace

void slot_reset(const CudaContext& cuda, const SlotMapView& map, int32_t slots) {
  reset_kernel<<<1, kSlotThreads, 0, cuda.stream>>>(map, slots);
}
void slot_invalidate(const CudaContext& cuda, const SlotMapView& map, int32_t first_slot, int32_t count) {
  invalidate_kernel<<<1, kSlotThreads, 0, cuda.stream>>>(map, first_slot, count);
}
void slot_begin_region(const CudaContext& cuda, const SlotMapView& map, int32_t region_slots,
                       const int32_t* layers, int64_t n) {
  begin_region_kernel<<<1, kSlotThreads, 0, cuda.stream>>>(map, region_slots, layers, n);
}
void slot_leave_evictable(const CudaContext& cuda, const SlotMapView& map, int32_t count) {
  leave_evictable_kernel<<<1, kSlotThreads, 0, cuda.stream>>>(map, count);
}
void slot_release_layer(const CudaContext& cuda, const SlotMapView& map, int32_t layer) {
  release_layer_kernel<<<1, kSlotThreads, 0, cuda.stream>>>(map, layer);
}
void slot_end_region(const CudaContext& cuda, const SlotMapView& map) {
  end_region_kernel<<<1, kSlotThreads, 0, cuda.stream>>>(map);
}
void slot_adopt(const CudaContext& cuda, const SlotMapView& map, int32_t layer, const int32_t* ids, int64_t n,
                const int32_t* region_slot_of, const CopyPlan& plan) {
  adopt_kernel<<<1, kSlotThreads, 0, cuda.stream>>>(map, layer, ids, n, region_slot_of, plan);
}
void slot_materialise(const CudaContext& cuda, const SlotMapView& map, int32_t layer, int32_t first_slot,
                      const CopyPlan& plan) {
  materialise_kernel<<<1, kSlotThreads, 0, cuda.stream>>>(map, layer, first_slot, plan);
}
void slot_resize(const CudaContext& cuda, const SlotMapView& map, int32_t slots, int32_t min_slots) {
  resize_kernel<<<1, kSlotThreads, 0, cuda.stream>>>(map, slots, min_slots);
}
void slot_fill(const CudaContext& cuda, const SlotMapView& map, const int32_t* ids, int64_t n,
               const CopyPlan& plan) {
  fill_kernel<<<1, 1, 0, cuda.stream>>>(map, ids, n, plan);
}
void slot_count_residents(const CudaContext& cuda, const SlotMapView& map, int32_t first_slot,
                          int64_t* counts) {
  count_residents_kernel<<<1, kSlotThreads, 0, cuda.stream>>>(map, first_slot, counts);
}
void slot_clear_status(const CudaContext& cuda, const SlotMapView& map) {
  clear_status_kernel<<<1, 1, 0, cuda.stream>>>(map);
}

}  // namespace sluice::cuda
