// Causal attention over a KV cache: a block for each query head of each row, and in decode for each segment
// of positions too.
#include <cuda_bf16.h>

#include <cmath>

#include "base/error.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/prompt_attention.h"

namespace sluice::cuda {
namespace {

constexpr int kWarps = 8;

template <class Value>
__global__ void store_kernel(const float* k, const float* v, int64_t rows, PositionOf position_of,
                             KvLayer cache) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t width = cache.kv_heads * cache.head_dim;
  if (i >= rows * width) return;
  const int64_t row = i / width, head = i % width / cache.head_dim, at = i % cache.head_dim;
  const int64_t position = position_of(row);
  cache.key<Value>(head, position)[at] = static_cast<Value>(k[i]);
  cache.value<Value>(head, position)[at] = static_cast<Value>(v[i]);
}

// Positions are cut into segments, a segment into eight groups of lanes a warp times four: each group takes
// every 32nd position, with an eighth of a head in each of its lanes. What groups have seen is joined in
// order, and what segments have seen likewise, so a row's arithmetic depends on its position and the cache's
// capacity alone: whether one block takes all segments of a row (prompts) or a block each (decode) changes
// nothing.
constexpr int kGroupLanes = 8, kGroups = kWarps * kWarp / kGroupLanes;

/// What was seen of some positions: Milakov and Gimelshein, "Online normalizer calculation for softmax",
/// 2018.
template <int kPerLane>
struct Partial {
  float highest = -INFINITY, sum = 0;
  float values[kPerLane] = {};
};

/// Element i of a lane's part of a head: quarters of 16 bytes where kVector, so that loads are wide.
template <bool kVector>
__device__ int element(int lane, int i) {
  return kVector ? ((i / 4) * kGroupLanes + lane) * 4 + i % 4 : lane + kGroupLanes * i;
}

__device__ inline void read_four(const float* from, float* to) {
  const float4 four = *reinterpret_cast<const float4*>(from);
  to[0] = four.x;
  to[1] = four.y;
  to[2] = four.z;
  to[3] = four.w;
}
__device__ inline void read_four(const __nv_bfloat16* from, float* to) {
  const uint2 four = *reinterpret_cast<const uint2*>(from);
  to[0] = __uint_as_float(four.x << 16);
  to[1] = __uint_as_float(four.x & 0xffff0000u);
  to[2] = __uint_as_float(four.y << 16);
  to[3] = __uint_as_float(four.y & 0xffff0000u);
}

template <int kPerLane, bool kVector, class Value>
__device__ void read_part(const Value* head, int dim, int lane, float (&part)[kPerLane]) {
  if (kVector) {
#pragma unroll
    for (int i = 0; i < kPerLane; i += 4) read_four(head + element<true>(lane, i), part + i);
  } else {
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      const int at = element<false>(lane, i);
      part[i] = at < dim ? static_cast<float>(head[at]) : 0.0f;
    }
  }
}

struct Span {
  int64_t begin, end;
};

template <int kPerLane, bool kVector, class Value>
__device__ Partial<kPerLane> attend(const float (&query)[kPerLane], const Value* keys, const Value* values,
                                    Span positions, int dim, int group, int lane) {
  Partial<kPerLane> p;
  for (int64_t position = positions.begin + group; position < positions.end; position += kGroups) {
    float key[kPerLane], value[kPerLane];
    read_part<kPerLane, kVector>(keys + position * dim, dim, lane, key);
    read_part<kPerLane, kVector>(values + position * dim, dim, lane, value);
    float score = 0;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) score = fmaf(query[i], key[i], score);
    const unsigned mask = 0xffu << (threadIdx.x % kWarp / kGroupLanes * kGroupLanes);
#pragma unroll
    for (int step = kGroupLanes / 2; step > 0; step /= 2) score += __shfl_xor_sync(mask, score, step);
    const float highest = fmaxf(p.highest, score);
    const float keep = expf(p.highest - highest), weight = expf(score - highest);
    p.sum = p.sum * keep + weight;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) p.values[i] = fmaf(weight, value[i], p.values[i] * keep);
    p.highest = highest;
  }
  return p;
}

/// The partial results of a block's groups, and of the segments before.
template <int kPerLane>
struct Joined {
  float highest[kGroups], sums[kGroups];
  float values[kGroups][kPerLane * kGroupLanes];
};

/// Thread t < dim has element t of what a block has seen so far.
struct Running {
  float highest = -INFINITY, sum = 0, value = 0;

  __device__ void join(float other_highest, float other_sum, float other_value) {
    if (other_sum == 0) return;  // no positions
    const float most = fmaxf(highest, other_highest);
    const float keep = expf(highest - most), take = expf(other_highest - most);
    sum = sum * keep + other_sum * take;
    value = value * keep + other_value * take;
    highest = most;
  }
};

/// One segment by the whole block; thread t < dim gets element t.
template <int kPerLane, bool kVector, class Value>
__device__ Running attend_segment(Joined<kPerLane>& joined, const float (&query)[kPerLane], const Value* keys,
                                  const Value* values, Span positions, int dim) {
  const int group = static_cast<int>(threadIdx.x) / kGroupLanes,
            lane = static_cast<int>(threadIdx.x) % kGroupLanes;
  const Partial<kPerLane> p = attend<kPerLane, kVector>(query, keys, values, positions, dim, group, lane);
  __syncthreads();  // the last segment's results have been read
  if (lane == 0) {
    joined.highest[group] = p.highest;
    joined.sums[group] = p.sum;
  }
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) joined.values[group][element<kVector>(lane, i)] = p.values[i];
  __syncthreads();
  Running seen;
  if (static_cast<int>(threadIdx.x) >= dim) return seen;
  float most = -INFINITY;
  for (int g = 0; g < kGroups; ++g) most = fmaxf(most, joined.highest[g]);
  seen.highest = most;
  for (int g = 0; g < kGroups; ++g) {
    if (joined.sums[g] == 0) continue;
    const float keep = expf(joined.highest[g] - most);
    seen.sum += joined.sums[g] * keep;
    seen.value += joined.values[g][threadIdx.x] * keep;
  }
  return seen;
}

struct AttentionCall {
  const float* q;
  int64_t heads;
  PositionOf position_of;
  float scale;
  KvLayer cache;
  int64_t segment;  // positions
  float* y;
  float* partials;  // [rows, heads, segments, dim + 2], where segments have a block each
};

template <int kPerLane, bool kVector, bool kSplit, class Value>
__global__ void __launch_bounds__(kWarps* kWarp) attention_kernel(const AttentionCall c) {
  __shared__ Joined<kPerLane> joined;
  let_next_begin();
  wait_for_previous();
  const int64_t row = blockIdx.y, head = blockIdx.x;
  const int dim = static_cast<int>(c.cache.head_dim), t = static_cast<int>(threadIdx.x);
  const int64_t kv_head = head / (c.heads / c.cache.kv_heads), at = (row * c.heads + head) * dim;
  const Value *keys = c.cache.key<const Value>(kv_head, 0), *values = c.cache.value<const Value>(kv_head, 0);
  const int64_t positions = c.position_of(row) + 1;
  const int64_t first = kSplit ? blockIdx.z * c.segment : 0;
  const int64_t last = kSplit ? min(positions, first + c.segment) : positions;
  float query[kPerLane];
  read_part<kPerLane, kVector>(c.q + at, dim, t % kGroupLanes, query);
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) query[i] *= c.scale;
  Running all;
  for (int64_t begin = first; begin < last; begin += c.segment) {
    const Running seen = attend_segment<kPerLane, kVector>(joined, query, keys, values,
                                                           {begin, min(last, begin + c.segment)}, dim);
    if (t < dim) all.join(seen.highest, seen.sum, seen.value);
  }
  if (t >= dim) return;
  if (!kSplit) {
    c.y[at + t] = all.value / all.sum;
    return;
  }
  if (first >= positions) return;
  float* partial = c.partials + ((row * c.heads + head) * gridDim.z + blockIdx.z) * (dim + 2);
  partial[t] = all.value;
  if (t == 0) {
    partial[dim] = all.highest;
    partial[dim + 1] = all.sum;
  }
}

__global__ void join_kernel(const AttentionCall c, int segments) {
  let_next_begin();
  wait_for_previous();
  const int64_t row = blockIdx.y, head = blockIdx.x;
  const int dim = static_cast<int>(c.cache.head_dim), t = static_cast<int>(threadIdx.x);
  const int64_t used = (c.position_of(row) + c.segment) / c.segment;
  const float* partial = c.partials + (row * c.heads + head) * segments * (dim + 2);
  Running all;
  for (int64_t s = 0; s < used; ++s, partial += dim + 2) all.join(partial[dim], partial[dim + 1], partial[t]);
  c.y[(row * c.heads + head) * dim + t] = all.value / all.sum;
}

template <int kPerLane, bool kVector, class Value>
void launch_attention(const CudaContext& cuda, const AttentionCall& call, int64_t rows, int segments) {
  const dim3 grid(static_cast<unsigned>(call.heads), static_cast<unsigned>(rows));
  if (segments == 1) {
    launch_behind(cuda, attention_kernel<kPerLane, kVector, false, Value>, grid, kWarps * kWarp, call);
    return;
  }
  const dim3 split(grid.x, grid.y, static_cast<unsigned>(segments));
  launch_behind(cuda, attention_kernel<kPerLane, kVector, true, Value>, split, kWarps * kWarp, call);
  launch_behind(cuda, join_kernel, grid, static_cast<unsigned>(call.cache.head_dim), call, segments);
}

/// Calls body(Value()) for the numbers that a cache holds.
template <class Body>
void with_value(KvFormat format, Body&& body) {
  if (format == KvFormat::kBf16) return body(__nv_bfloat16());
  body(float());
}

}  // namespace

void kv_store(const CudaContext& cuda, const float* k, const float* v, int64_t rows,
              const Positions& positions, const KvLayer& cache) {
  const int64_t n = rows * cache.kv_heads * cache.head_dim;
  if (n == 0) return;
  with_value(cache.format, [&]<class Value>(Value) {
    store_kernel<Value>
        <<<blocks_for(n, 256), 256, 0, cuda.stream>>>(k, v, rows, PositionOf(positions), cache);
  });
}

void attention(const CudaContext& cuda, const float* q, int64_t rows, int64_t heads,
               const Positions& positions, float scale, const KvLayer& cache, float* partials, float* y) {
  SLUICE_CHECK_MSG(cache.head_dim <= 256, "heads wider than 256");
  if (rows == 0) return;
  if (prompt_attention_fits(rows, cache)) {
    return prompt_attention(cuda, q, rows, heads, positions, scale, cache, y);
  }
  const int64_t segment = attention_segment(cache.capacity);
  const bool split = partials != nullptr && rows <= kSplitRows;
  const int segments = split ? static_cast<int>(ceil_div(cache.capacity, segment)) : 1;
  const AttentionCall call{q, heads, PositionOf(positions), scale, cache, segment, y, partials};
  with_value(cache.format, [&]<class Value>(Value) {
    switch (cache.head_dim) {
      case 64:
        return launch_attention<8, true, Value>(cuda, call, rows, segments);
      case 128:
        return launch_attention<16, true, Value>(cuda, call, rows, segments);
      case 256:
        return launch_attention<32, true, Value>(cuda, call, rows, segments);
      default:
        break;
    }
    if (cache.head_dim <= 64) return launch_attention<8, false, Value>(cuda, call, rows, segments);
    if (cache.head_dim <= 128) return launch_attention<16, false, Value>(cuda, call, rows, segments);
    launch_attention<32, false, Value>(cuda, call, rows, segments);
  });
}

}  // namespace sluice::cuda
