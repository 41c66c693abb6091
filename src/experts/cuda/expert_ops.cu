// Copies of expert rows by a plan on the device, routes of touched passes, forecasts, the log of writes.
#include "experts/cuda/expert_ops.h"
#include "experts/cuda/slot_block.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/top_k.cuh"

namespace sluice::cuda {
namespace {

// From mapped host memory 8 blocks of 1024 threads already fill the link, and the other multiprocessors are
// left to the products; from device memory more are needed.
constexpr int kGatherBlocks = 16, kGatherThreads = 1024, kGatherAhead = 4;

__global__ void fill_kernel(int32_t* values, int64_t n, int32_t value) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) values[i] = value;
}

__global__ void tile_kernel(int32_t* where, int64_t experts, int32_t first, int32_t last, int32_t slot,
                            const ExpertSet nowhere) {
  for (int64_t e = threadIdx.x; e < experts; e += blockDim.x) {
    where[e] = e >= first && e < last && !nowhere.contains(static_cast<int32_t>(e))
                   ? slot + static_cast<int32_t>(e) - first
                   : -1;
  }
}

/// Copies the rows of a plan in units of 16 bytes, all of them dealt out over the grid; source_of(entry) is a
/// row.
template <class SourceOf>
__device__ void copy_rows(const CopyPlan& plan, std::byte* target, size_t row_bytes, SourceOf&& source_of) {
  const auto units = static_cast<int64_t>(row_bytes / sizeof(uint4));
  const int64_t all = *plan.count * units, step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < all;
       i += kGatherAhead * step) {
    uint4 held[kGatherAhead];
#pragma unroll
    for (int j = 0; j < kGatherAhead; ++j) {
      const int64_t unit = i + j * step;
      if (unit < all) held[j] = reinterpret_cast<const uint4*>(source_of(unit / units))[unit % units];
    }
#pragma unroll
    for (int j = 0; j < kGatherAhead; ++j) {
      const int64_t unit = i + j * step;
      if (unit >= all) continue;
      std::byte* row = target + static_cast<size_t>(plan.dst_slot[unit / units]) * row_bytes;
      reinterpret_cast<uint4*>(row)[unit % units] = held[j];
    }
  }
}

__global__ void __launch_bounds__(kGatherThreads)
    gather_kernel(const CopyPlan plan, const std::byte* source, std::byte* target, size_t row_bytes) {
  copy_rows(plan, target, row_bytes,
            [&](int64_t i) { return source + static_cast<size_t>(plan.src_row[i]) * row_bytes; });
}

__global__ void __launch_bounds__(kGatherThreads)
    gather_layers_kernel(const CopyPlan plan, const std::byte* const* bases, int32_t experts,
                         std::byte* target, size_t row_bytes) {
  copy_rows(plan, target, row_bytes, [&](int64_t i) {
    const int32_t id = plan.src_row[i];
    return bases[id / experts] + static_cast<size_t>(id % experts) * row_bytes;
  });
}

__global__ void __launch_bounds__(kGatherThreads)
    place_kernel(const CopyPlan plan, int64_t first, int64_t last, const std::byte* data, std::byte* slots,
                 size_t row_bytes) {
  const int64_t end = min(last, static_cast<int64_t>(*plan.count));
  const auto units = static_cast<int64_t>(row_bytes / sizeof(uint4));
  for (int64_t i = first; i < end; ++i) {
    const auto* from = reinterpret_cast<const uint4*>(data + static_cast<size_t>(i - first) * row_bytes);
    auto* to = reinterpret_cast<uint4*>(slots + static_cast<size_t>(plan.dst_slot[i]) * row_bytes);
    for (int64_t u = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; u < units;
         u += static_cast<int64_t>(gridDim.x) * blockDim.x) {
      to[u] = from[u];
    }
  }
}

struct TransientCall {
  SlotMapView map;
  int32_t layer;
  const int32_t* ids;
  int64_t n;
  int32_t first_slot, ring;
  int32_t* row_of;
  CopyPlan plan;
  TransientCounters* counters;
  bool capped;
  FetchRule rule;
  int32_t* cpu_ids;
};

// Thread e looks after expert e.
__global__ void __launch_bounds__(kSlotThreads) transient_kernel(const TransientCall c) {
  __shared__ SlotBlock block;
  __shared__ int32_t ids_of[kMaxExperts];
  const auto e = static_cast<int32_t>(threadIdx.x);
  ids_of[e] = 0;
  __syncthreads();
  int32_t routed = 0;
  for (int64_t i = e; i < c.n; i += kSlotThreads) {
    if (c.ids[i] < 0) continue;
    ++routed;
    atomicAdd(&ids_of[c.ids[i]], 1);
  }
  routed = sum_of(block, routed);
  const bool active = e < c.map.shape.experts && ids_of[e] > 0;
  const int32_t held = active ? c.map.slot_of[c.map.flat(c.layer, e)] : -1;
  const bool missing = active && held < c.map.header->floor;
  const int32_t distinct = sum_of(block, active ? 1 : 0);
  const int32_t misses = sum_of(block, missing ? 1 : 0);
  const int32_t fetches = c.capped ? c.rule.fetches(misses) : misses;
  bool fetched = missing;
  if (missing && fetches < misses) {
    int32_t before = 0;
    for (int32_t other = 0; other < c.map.shape.experts; ++other) {
      if (ids_of[other] == 0 || c.map.slot_of[c.map.flat(c.layer, other)] >= c.map.header->floor) continue;
      before += ids_of[other] > ids_of[e] || (ids_of[other] == ids_of[e] && other < e);
    }
    fetched = before < fetches;
  }
  const int32_t at = rank_of(block, fetched);
  const int32_t room = min(c.ring, c.plan.capacity), wanted = block.total;
  if (e < c.map.shape.experts) {
    c.row_of[e] = !active ? -1 : !missing ? held : fetched && at < room ? c.first_slot + at : -1;
  }
  if (fetched && at < room) add_entry(c.plan, at, c.first_slot + at, e);
  if (c.capped) {
    __shared__ uint32_t on_cpu[kMaxExperts / 32];
    const uint32_t votes = __ballot_sync(~0u, missing && !fetched);
    if (lane_id() == 0) on_cpu[warp_id()] = votes;
    __syncthreads();
    for (int64_t i = e; i < c.n; i += kSlotThreads) {
      const int32_t id = c.ids[i];
      c.cpu_ids[i] = id >= 0 && (on_cpu[id / 32] >> (id % 32) & 1u) != 0 ? id : -1;
    }
  }
  if (e != 0) return;
  *c.plan.count = min(wanted, room);
  TransientCounters& counters = *c.counters;
  ++counters.calls;
  counters.routed += static_cast<uint64_t>(routed);
  counters.distinct += static_cast<uint64_t>(distinct);
  counters.misses += static_cast<uint64_t>(misses);
  counters.cpu += static_cast<uint64_t>(misses - fetches);
  counters.overflows += static_cast<uint64_t>(wanted - min(wanted, room));
}

constexpr int kForecastRows = 8;

// Warp r ranks the logits of row r; the block then walks rank by rank over the rows.
template <int kPerLane>
__global__ void rank_kernel(const float* logits, int rows, int experts, int ranks, int32_t* ids) {
  extern __shared__ int32_t ranked[];  // [rows, ranks]
  let_next_begin();
  wait_for_previous();
  const int warp = warp_id(), lane = lane_id();
  if (warp < rows) {
    WarpScores<kPerLane> left(logits + static_cast<int64_t>(warp) * experts, experts, lane);
    for (int rank = 0; rank < ranks; ++rank) {
      float score;
      const int id = left.take(lane, score);
      if (lane == 0) ranked[warp * ranks + rank] = id;
    }
  }
  if (rows == 1) __syncthreads();
  for (int e = static_cast<int>(threadIdx.x); e < experts; e += static_cast<int>(blockDim.x)) {
    ids[e] = rows == 1 && e < ranks ? ranked[e] : -1;
  }
  if (rows == 1) return;
  __syncthreads();
  if (threadIdx.x != 0) return;
  uint32_t seen[kMaxExperts / 32] = {};
  int count = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    for (int r = 0; r < rows; ++r) {
      const int32_t id = ranked[r * ranks + rank];
      if (seen[id / 32] >> (id % 32) & 1u) continue;
      seen[id / 32] |= 1u << (id % 32);
      ids[count++] = id;
    }
  }
}

__global__ void __launch_bounds__(kSlotThreads)
    count_forecast_kernel(const int32_t* ids, int64_t n, int64_t experts, const int32_t* forecast,
                          ForecastCounters* counters) {
  __shared__ SlotBlock block;
  let_next_begin();
  wait_for_previous();
  const auto t = static_cast<int32_t>(threadIdx.x);
  if (t < kMaxExperts / 32) block.experts[t] = 0;
  __syncthreads();
  for (int64_t i = t; i < n; i += kSlotThreads) {
    if (ids[i] >= 0) atomicOr(&block.experts[ids[i] / 32], 1u << (ids[i] % 32));
  }
  __syncthreads();
  const int32_t wanted = sum_of(block, t < experts && names(block, t) ? 1 : 0);
  if (t < kForecastRanks && t < experts && forecast[t] >= 0 && names(block, forecast[t])) {
    ++reinterpret_cast<uint64_t*>(&counters->at_rank)[t];
  }
  if (t != 0) return;
  ++counters->calls;
  counters->wanted += static_cast<uint64_t>(wanted);
}

__global__ void __launch_bounds__(kSlotThreads)
    arrivals_kernel(const int32_t* ids, int64_t n, const CopyPlan predicted, const CopyPlan demand,
                    ArrivalCounters* counters) {
  __shared__ SlotBlock block;
  let_next_begin();
  wait_for_previous();
  const auto e = static_cast<int32_t>(threadIdx.x);
  const auto among = [](const int32_t* values, int64_t count, int32_t value) {
    for (int64_t i = 0; i < count; ++i) {
      if (values[i] == value) return true;
    }
    return false;
  };
  int32_t wanted = 0, again = 0;
  for (int32_t i = e; i < *predicted.count; i += kSlotThreads) {
    const int32_t expert = predicted.src_row[i];
    if (!among(ids, n, expert)) continue;
    const bool missed = among(demand.src_row, *demand.count, expert);
    again += missed;
    wanted += !missed;
  }
  wanted = sum_of(block, wanted);
  again = sum_of(block, again);
  if (e != 0) return;
  counters->wanted += static_cast<uint64_t>(wanted);
  counters->again += static_cast<uint64_t>(again);
}

__global__ void __launch_bounds__(kSlotThreads)
    streamed_again_kernel(const SlotMapView map, int32_t layer, const ExpertSet streamed,
                          StreamCounters* counters) {
  __shared__ SlotBlock block;
  const auto e = static_cast<int32_t>(threadIdx.x);
  const bool again = e < map.shape.experts && streamed.contains(e) && map.slot_of[map.flat(layer, e)] >= 0;
  const int32_t all = sum_of(block, again ? 1 : 0);
  if (e == 0) counters->again += static_cast<uint64_t>(all);
}

__device__ void note_violation(AuditResult* result, int32_t slot, int32_t id) {
  const auto at = atomicAdd(reinterpret_cast<unsigned long long*>(&result->violations), 1ull);
  if (at >= sizeof(result->slots) / sizeof(int32_t)) return;
  reinterpret_cast<int32_t*>(&result->slots)[at] = slot;
  reinterpret_cast<int32_t*>(&result->ids)[at] = id;
}

// A block a slot.
__global__ void audit_slots_kernel(const SlotMapView map, const std::byte* slots, size_t row_bytes,
                                   const std::byte* const* bases, AuditResult* result) {
  const auto slot = static_cast<int32_t>(blockIdx.x);
  if (slot >= map.header->slots) return;
  const int32_t owner = map.owner_of[slot], experts = map.shape.experts;
  if (owner < 0) return;
  const bool held = owner < map.shape.layers * experts && map.slot_of[owner] == slot;
  if (threadIdx.x == 0) atomicAdd(reinterpret_cast<unsigned long long*>(&result->slots_checked), 1ull);
  bool differs = !held;
  if (held) {
    const auto* own = reinterpret_cast<const uint4*>(slots + static_cast<size_t>(slot) * row_bytes);
    const auto* row = reinterpret_cast<const uint4*>(bases[owner / experts] +
                                                     static_cast<size_t>(owner % experts) * row_bytes);
    for (size_t i = threadIdx.x; i < row_bytes / sizeof(uint4); i += blockDim.x) {
      const uint4 a = own[i], b = row[i];
      differs = differs || a.x != b.x || a.y != b.y || a.z != b.z || a.w != b.w;
    }
  }
  if (__syncthreads_or(differs) != 0 && threadIdx.x == 0) note_violation(result, slot, owner);
}

// What a hit would read: an expert that is mapped to a slot of somebody else. Then who wrote the slots that
// were named.
__global__ void __launch_bounds__(kSlotThreads)
    audit_map_kernel(const SlotMapView map, const SlotHistory* log, AuditResult* result) {
  const int32_t ids = map.shape.layers * map.shape.experts;
  for (int32_t id = static_cast<int32_t>(threadIdx.x); id < ids; id += kSlotThreads) {
    const int32_t slot = map.slot_of[id];
    if (slot == -1) continue;
    if (slot < 0 || slot >= map.header->slots || map.owner_of[slot] != id) note_violation(result, slot, id);
  }
  __syncthreads();
  constexpr int kNamed = sizeof(AuditResult::slots) / sizeof(int32_t);
  const auto i = static_cast<int>(threadIdx.x);
  if (log == nullptr || i >= kNamed || i >= result->violations) return;
  const int32_t slot = reinterpret_cast<const int32_t*>(&result->slots)[i];
  if (slot < 0 || slot >= map.header->slots) return;
  reinterpret_cast<SlotHistory*>(&result->writers)[i] = log[slot];
}

constexpr size_t kLogHeader = 64;
constexpr int kHistory = 4;

__device__ void push_write(void* memory, int64_t sequence, int32_t slot, SlotWrite cause, int32_t id) {
  auto* history = reinterpret_cast<SlotWriteRecord*>(static_cast<std::byte*>(memory) + kLogHeader) +
                  static_cast<int64_t>(slot) * kHistory;
  for (int i = kHistory - 1; i > 0; --i) history[i] = history[i - 1];
  history[0].sequence = sequence;
  history[0].cause = cause;
  history[0].id = id;
}

// One thread: a slot may stand in a plan twice, and the order counts. Runs only while audits do.
__global__ void note_kernel(void* memory, SlotWrite cause, const SlotMapView map, int32_t first_id,
                            const CopyPlan plan) {
  auto& sequence = *static_cast<int64_t*>(memory);
  for (int32_t i = 0; i < *plan.count; ++i) {
    const int32_t slot = plan.dst_slot[i];
    push_write(memory, ++sequence, slot, cause,
               first_id < 0 ? map.owner_of[slot] : first_id + plan.src_row[i]);
  }
}

__global__ void note_range_kernel(void* memory, SlotWrite cause, int32_t first, int32_t count) {
  auto& sequence = *static_cast<int64_t*>(memory);
  for (int32_t slot = first; slot < first + count; ++slot) push_write(memory, ++sequence, slot, cause, -1);
}

__global__ void reset_log_kernel(void* memory, int64_t slots) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i == 0) *static_cast<int64_t*>(memory) = 0;
  if (i >= slots * kHistory) return;
  reinterpret_cast<SlotWriteRecord*>(static_cast<std::byte*>(memory) + kLogHeader)[i] = {};
}

}  // namespace

void fill_i32(const CudaContext& cuda, int32_t* values, int64_t n, int32_t value) {
  if (n > 0) fill_kernel<<<blocks_for(n, 256), 256, 0, cuda.stream>>>(values, n, value);
}

void zero(const CudaContext& cuda, void* memory, size_t bytes) {
  cudaMemsetAsync(memory, 0, bytes, cuda.stream);  // the stream looks for its error, as for a launch
}

void tile_slots(const CudaContext& cuda, int32_t* where, int64_t experts, int32_t first, int32_t last,
                int32_t slot, const ExpertSet& nowhere) {
  tile_kernel<<<1, 256, 0, cuda.stream>>>(where, experts, first, last, slot, nowhere);
}

void gather_rows(const CudaContext& cuda, const CopyPlan& plan, const std::byte* source, std::byte* target,
                 size_t row_bytes) {
  gather_kernel<<<kGatherBlocks, kGatherThreads, 0, cuda.stream>>>(plan, source, target, row_bytes);
}

void gather_layer_rows(const CudaContext& cuda, const CopyPlan& plan, const std::byte* const* bases,
                       int32_t experts, std::byte* target, size_t row_bytes) {
  gather_layers_kernel<<<kGatherBlocks, kGatherThreads, 0, cuda.stream>>>(plan, bases, experts, target,
                                                                          row_bytes);
}

void place_rows(const CudaContext& cuda, const CopyPlan& plan, int64_t first, int64_t last,
                const std::byte* data, std::byte* slots, size_t row_bytes) {
  place_kernel<<<kGatherBlocks, kGatherThreads, 0, cuda.stream>>>(plan, first, last, data, slots, row_bytes);
}

void route_transient(const CudaContext& cuda, const SlotMapView& map, int32_t layer, const int32_t* ids,
                     int64_t n, int32_t first_slot, int32_t ring, int32_t* row_of, const CopyPlan& plan,
                     TransientCounters* counters, const std::optional<FetchRule>& rule, int32_t* cpu_ids) {
  const TransientCall call{map,
                           layer,
                           ids,
                           n,
                           first_slot,
                           ring,
                           row_of,
                           plan,
                           counters,
                           rule.has_value(),
                           rule.value_or(FetchRule{}),
                           cpu_ids};
  transient_kernel<<<1, kSlotThreads, 0, cuda.stream>>>(call);
}

void rank_forecast(const CudaContext& cuda, const float* logits, int64_t rows, int64_t experts, int64_t top_k,
                   int32_t* ids) {
  const int n = static_cast<int>(rows < kForecastRows ? rows : kForecastRows);
  const int ranks = static_cast<int>(2 * top_k < experts ? 2 * top_k : experts);
  const size_t shared = static_cast<size_t>(n) * static_cast<size_t>(ranks) * sizeof(int32_t);
  with_scores_per_lane(experts, [&](auto per_lane) {
    launch_with_shared(cuda, rank_kernel<per_lane.value>, 1, kForecastRows * 32, shared, logits, n,
                       static_cast<int>(experts), ranks, ids);
  });
}

void count_forecast(const CudaContext& cuda, const int32_t* ids, int64_t n, int64_t experts,
                    const int32_t* forecast, ForecastCounters* counters) {
  launch_behind(cuda, count_forecast_kernel, 1, kSlotThreads, ids, n, experts, forecast, counters);
}

void count_arrivals(const CudaContext& cuda, const int32_t* ids, int64_t n, const CopyPlan& predicted,
                    const CopyPlan& demand, ArrivalCounters* counters) {
  launch_behind(cuda, arrivals_kernel, 1, kSlotThreads, ids, n, predicted, demand, counters);
}

void count_streamed_again(const CudaContext& cuda, const SlotMapView& map, int32_t layer,
                          const ExpertSet& streamed, StreamCounters* counters) {
  streamed_again_kernel<<<1, kSlotThreads, 0, cuda.stream>>>(map, layer, streamed, counters);
}

void audit(const CudaContext& cuda, const SlotMapView& map, const std::byte* slots, size_t row_bytes,
           const std::byte* const* bases, const SlotHistory* log, AuditResult* result) {
  zero(cuda, result, sizeof(AuditResult));
  audit_slots_kernel<<<static_cast<unsigned>(map.shape.max_slots), 256, 0, cuda.stream>>>(
      map, slots, row_bytes, bases, result);
  audit_map_kernel<<<1, kSlotThreads, 0, cuda.stream>>>(map, log, result);
}

void reset_slot_log(const CudaContext& cuda, void* memory, size_t bytes) {
  const auto slots = static_cast<int64_t>((bytes - kLogHeader) / sizeof(SlotHistory));
  reset_log_kernel<<<blocks_for(slots * kHistory + 1, 256), 256, 0, cuda.stream>>>(memory, slots);
}

void note_writes(const CudaContext& cuda, void* memory, SlotWrite cause, const SlotMapView& map,
                 int32_t first_id, const CopyPlan& plan) {
  note_kernel<<<1, 1, 0, cuda.stream>>>(memory, cause, map, first_id, plan);
}

void note_range(const CudaContext& cuda, void* memory, SlotWrite cause, int32_t first, int32_t count) {
  note_range_kernel<<<1, 1, 0, cuda.stream>>>(memory, cause, first, count);
}

}  // namespace sluice::cuda
