// Causal attention over a KV cache: a block for each query head of each row, its warps take positions by
// turns.
#include <cuda_bf16.h>

#include <cmath>

#include "base/error.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"

namespace sluice::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kMostPerLane = 8;  // head_dim 256

template <class Value>
__global__ void store_kernel(const float* k, const float* v, int64_t rows, int64_t first_position,
                             KvLayer cache) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t width = cache.kv_heads * cache.head_dim;
  if (i >= rows * width) return;
  const int64_t row = i / width, head = i % width / cache.head_dim, at = i % cache.head_dim;
  cache.key<Value>(head, first_position + row)[at] = static_cast<Value>(k[i]);
  cache.value<Value>(head, first_position + row)[at] = static_cast<Value>(v[i]);
}

// What a warp has seen of its positions: Milakov and Gimelshein, "Online normalizer calculation for softmax",
// 2018.
struct Partial {
  float highest, sum;
  float values[kMostPerLane];
};

template <int kPerLane, class Value>
__device__ Partial attend(const float* q, const Value* keys, const Value* values, int64_t positions, int dim,
                          float scale, int warp, int lane) {
  float query[kPerLane];
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) query[i] = lane + kWarp * i < dim ? q[lane + kWarp * i] * scale : 0.0f;
  Partial p{-INFINITY, 0, {}};
  for (int64_t position = warp; position < positions; position += kWarps) {
    const Value* key = keys + position * dim;
    const Value* value = values + position * dim;
    float dot = 0;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      if (lane + kWarp * i < dim) dot = fmaf(query[i], static_cast<float>(key[lane + kWarp * i]), dot);
    }
    const float score = warp_sum(dot);
    const float highest = fmaxf(p.highest, score);
    const float keep = expf(p.highest - highest), weight = expf(score - highest);
    p.sum = p.sum * keep + weight;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      if (lane + kWarp * i < dim)
        p.values[i] = fmaf(weight, static_cast<float>(value[lane + kWarp * i]), p.values[i] * keep);
    }
    p.highest = highest;
  }
  return p;
}

template <int kPerLane, class Value>
__global__ void attention_kernel(const float* q, int64_t heads, int64_t first_position, float scale,
                                 KvLayer cache, float* y) {
  __shared__ float highest[kWarps], sums[kWarps];
  __shared__ float values[kWarps][kPerLane * kWarp];
  const int64_t row = blockIdx.y, head = blockIdx.x;
  const int dim = static_cast<int>(cache.head_dim);
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t kv_head = head / (heads / cache.kv_heads), at = (row * heads + head) * dim;
  const Partial p =
      attend<kPerLane>(q + at, cache.key<const Value>(kv_head, 0), cache.value<const Value>(kv_head, 0),
                       first_position + row + 1, dim, scale, warp, lane);
  if (lane == 0) {
    highest[warp] = p.highest;
    sums[warp] = p.sum;
  }
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) values[warp][lane + kWarp * i] = p.values[i];
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < dim; i += kWarps * kWarp) {
    float most = -INFINITY;
    for (int w = 0; w < kWarps; ++w) most = fmaxf(most, highest[w]);
    float sum = 0, value = 0;
    for (int w = 0; w < kWarps; ++w) {
      const float keep = expf(highest[w] - most);  // 0 for a warp without positions
      sum += sums[w] * keep;
      value += values[w][i] * keep;
    }
    y[at + i] = value / sum;
  }
}

template <class Value>
void launch_attention(const CudaContext& cuda, const float* q, int64_t rows, int64_t heads,
                      int64_t first_position, float scale, const KvLayer& cache, float* y) {
  const dim3 grid(static_cast<unsigned>(heads), static_cast<unsigned>(rows));
  const auto launch = [&](auto kernel) {
    kernel<<<grid, kWarps * kWarp, 0, cuda.stream>>>(q, heads, first_position, scale, cache, y);
  };
  if (cache.head_dim <= 64) return launch(attention_kernel<2, Value>);
  if (cache.head_dim <= 128) return launch(attention_kernel<4, Value>);
  launch(attention_kernel<8, Value>);
}

}  // namespace

void kv_store(const CudaContext& cuda, const float* k, const float* v, int64_t rows, int64_t first_position,
              const KvLayer& cache) {
  const int64_t n = rows * cache.kv_heads * cache.head_dim;
  if (n == 0) return;
  const auto kernel = cache.format == KvFormat::kBf16 ? store_kernel<__nv_bfloat16> : store_kernel<float>;
  kernel<<<blocks_for(n, 256), 256, 0, cuda.stream>>>(k, v, rows, first_position, cache);
}

void attention(const CudaContext& cuda, const float* q, int64_t rows, int64_t heads, int64_t first_position,
               float scale, const KvLayer& cache, float* y) {
  SLUICE_CHECK_MSG(cache.head_dim <= kMostPerLane * kWarp, "heads wider than 256");
  if (rows == 0) return;
  const auto launch =
      cache.format == KvFormat::kBf16 ? launch_attention<__nv_bfloat16> : launch_attention<float>;
  launch(cuda, q, rows, heads, first_position, scale, cache, y);
}

}  // namespace sluice::cuda
