// What the kernels on a slot map are made of. Each kernel is one block, so that its steps are ordered by
// barriers alone; thread e looks after expert e of the layer, and slots are dealt out to the threads in turn.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "experts/slot_map.h"

namespace sluice::cuda {

constexpr int kSlotThreads = 1024;
static_assert(kSlotThreads >= kMaxExperts, "a thread for each expert of a layer");
constexpr int kSlotWarps = kSlotThreads / 32;

/// Where a slot stands in the order of eviction: the lowest goes first.
struct VictimKey {
  uint64_t high;  // 0 for empty and predicted slots, and under kLru
  uint64_t low;   // last_use, slot
  __device__ bool operator<(const VictimKey& other) const {
    return high != other.high ? high < other.high : low < other.low;
  }
};
constexpr int kSlotBits = 20;  // kMaxMoeLayers * kMaxExperts slots
static_assert(kMaxMoeLayers * kMaxExperts <= 1 << kSlotBits);

__device__ inline VictimKey no_victim() { return {~uint64_t{0}, ~uint64_t{0}}; }
__device__ inline bool is_victim(const VictimKey& key) { return key.low != ~uint64_t{0}; }
__device__ inline int32_t slot_of(const VictimKey& key) {
  return static_cast<int32_t>(key.low & ((1u << kSlotBits) - 1));
}

__device__ inline VictimKey key_of(const SlotMapView& map, int32_t slot) {
  const int64_t use = map.last_use[slot];
  const uint64_t low = static_cast<uint64_t>(use) << kSlotBits | static_cast<uint64_t>(slot);
  if (map.shape.policy == SlotPolicy::kLru || use < kFirstClock) return {0, low};
  const int32_t layers = map.shape.layers, layer = map.owner_of[slot] / map.shape.experts;
  const int32_t until_turn = (layer - map.header->turn - 1 + layers) % layers + 1;
  const int64_t stale =
      (map.header->step - map.used_step[slot]) * layers + int64_t{map.shape.beta} * until_turn;
  return {(uint64_t{1} << 63) - static_cast<uint64_t>(stale),
          low};  // the stalest first, after those without a clock
}

__device__ inline void empty_slot(const SlotMapView& map, int32_t slot) {
  if (map.owner_of[slot] >= 0) map.slot_of[map.owner_of[slot]] = -1;
  map.owner_of[slot] = -1;
  map.last_use[slot] = kEmptySlot;
  map.used_step[slot] = 0;
}

__device__ inline void give_slot(const SlotMapView& map, int32_t slot, int32_t id, int64_t last_use) {
  if (map.slot_of[id] >= 0) empty_slot(map, map.slot_of[id]);
  empty_slot(map, slot);
  map.slot_of[id] = slot;
  map.owner_of[slot] = id;
  map.last_use[slot] = last_use;
  if (last_use == map.header->clock) map.used_step[slot] = map.header->step;
}

__device__ inline void touch_slot(const SlotMapView& map, int32_t slot) {
  map.last_use[slot] = map.header->clock;
  map.used_step[slot] = map.header->step;
}

__device__ inline void add_entry(const CopyPlan& plan, int32_t at, int32_t slot, int32_t row) {
  plan.dst_slot[at] = slot;
  plan.src_row[at] = row;
}

/// For one thread: keeps the first failure.
__device__ inline void keep_failure(const SlotMapView& map, SlotError code, int32_t layer, int64_t detail) {
  if (map.header->status.code == SlotError::kNone) map.header->status = {code, layer, detail};
}

/// Working memory of a block. Every function here is called by all threads, and ends with a barrier where it
/// returns what all threads share.
struct SlotBlock {
  VictimKey best[2][kSlotWarps];  // two, so that one barrier a round is enough
  int32_t counts[kSlotWarps];
  int64_t lowest;
  int32_t total;
  uint32_t experts[kMaxExperts / 32];  // the ids of the call
  int32_t victims[kMaxExperts];
};

__device__ inline int lane_id() { return static_cast<int>(threadIdx.x) % 32; }
__device__ inline int warp_id() { return static_cast<int>(threadIdx.x) / 32; }

/// How many threads before this one have `flag`, and in block.total how many there are.
__device__ inline int32_t rank_of(SlotBlock& block, bool flag) {
  const uint32_t votes = __ballot_sync(~0u, flag);
  __syncthreads();
  if (lane_id() == 0) block.counts[warp_id()] = __popc(votes);
  __syncthreads();
  int32_t before = 0, all = 0;
  for (int w = 0; w < kSlotWarps; ++w) {
    if (w < warp_id()) before += block.counts[w];
    all += block.counts[w];
  }
  if (threadIdx.x == 0) block.total = all;
  __syncthreads();
  return before + __popc(votes & ((1u << lane_id()) - 1));
}

/// The sum over all threads, in each.
__device__ inline int32_t sum_of(SlotBlock& block, int32_t value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  __syncthreads();
  if (lane_id() == 0) block.counts[warp_id()] = value;
  __syncthreads();
  int32_t all = 0;
  for (int w = 0; w < kSlotWarps; ++w) all += block.counts[w];
  return all;
}

/// The lowest index for which a thread passes one below `none`; `none` where no thread does.
__device__ inline int64_t lowest_of(SlotBlock& block, int64_t index, int64_t none) {
  __syncthreads();
  if (threadIdx.x == 0) block.lowest = none;
  __syncthreads();
  if (index < none) atomicMin(reinterpret_cast<long long*>(&block.lowest), static_cast<long long>(index));
  __syncthreads();
  return block.lowest;
}

/// Sets block.experts to the ids [n] (without padding) and returns the index of the first that is no expert,
/// or n.
__device__ inline int64_t collect_ids(SlotBlock& block, const SlotMapView& map, const int32_t* ids,
                                      int64_t n) {
  if (threadIdx.x < kMaxExperts / 32) block.experts[threadIdx.x] = 0;
  __syncthreads();
  int64_t bad = n;
  for (int64_t i = threadIdx.x; i < n; i += kSlotThreads) {
    const int32_t id = ids[i];
    if (id < -1 || id >= map.shape.experts) {
      bad = min(bad, i);
    } else if (id >= 0) {
      atomicOr(&block.experts[id / 32], 1u << (id % 32));
    }
  }
  return lowest_of(block, bad, n);
}
__device__ inline bool names(const SlotBlock& block, int32_t expert) {
  return (block.experts[expert / 32] >> (expert % 32) & 1u) != 0;
}

/// The lowest key of the warp, in every lane. Keys of different slots differ.
__device__ inline uint64_t warp_min(uint64_t value) {
  const auto high = static_cast<uint32_t>(value >> 32);
  const uint32_t least_high = __reduce_min_sync(~0u, high);
  const uint32_t low = high == least_high ? static_cast<uint32_t>(value) : ~0u;
  return uint64_t{least_high} << 32 | __reduce_min_sync(~0u, low);
}
__device__ inline VictimKey warp_min(const VictimKey& key, bool scored) {
  if (!scored) {
    const uint64_t low = warp_min(key.low);
    return {low == ~uint64_t{0} ? low : 0, low};
  }
  const uint64_t high = warp_min(key.high);
  return {high, warp_min(key.high == high ? key.low : ~uint64_t{0})};
}

/// Puts the first `most` slots to evict into block.victims, in order, and returns how many there are.
/// `may_go(slot)` says which of the slots in [first, header->slots) can go. Each thread keeps the keys of its
/// first slots in registers, and the best of all its slots; a round finds the best of all threads and lets
/// its thread look for the next one. Ends with a barrier.
template <class MayGo>
__device__ int32_t find_victims(SlotBlock& block, const SlotMapView& map, int32_t first, int32_t most,
                                MayGo&& may_go) {
  constexpr int kKept = 4;
  const bool scored = map.shape.policy == SlotPolicy::kScored;
  const int32_t slots = map.header->slots, begin = first + static_cast<int32_t>(threadIdx.x);
  VictimKey kept[kKept], own = no_victim(), taken = no_victim();
#pragma unroll
  for (int i = 0; i < kKept; ++i) {
    const int32_t slot = begin + i * kSlotThreads;
    kept[i] = slot < slots && may_go(slot) ? key_of(map, slot) : no_victim();
  }
  // What does not fit the registers is read again for each victim of this thread, without those it has given.
  const auto search = [&](bool again) {
    own = no_victim();
#pragma unroll
    for (int i = 0; i < kKept; ++i) {
      if (again && kept[i].low == taken.low) kept[i] = no_victim();
      if (kept[i] < own) own = kept[i];
    }
    for (int32_t slot = begin + kKept * kSlotThreads; slot < slots; slot += kSlotThreads) {
      if (!may_go(slot)) continue;
      const VictimKey key = key_of(map, slot);
      if (key < own && (!again || taken < key)) own = key;
    }
  };
  search(false);
  int32_t found = 0;
  for (; found < most; ++found) {
    VictimKey* round = block.best[found & 1];
    const VictimKey of_warp = warp_min(own, scored);
    if (lane_id() == 0) round[warp_id()] = of_warp;
    __syncthreads();
    const VictimKey best = warp_min(round[lane_id()], scored);
    if (!is_victim(best)) break;
    if (threadIdx.x == 0) block.victims[found] = slot_of(best);
    if (own.low == best.low) {
      taken = best;
      search(true);
    }
  }
  __syncthreads();
  return found;
}

}  // namespace sluice::cuda
