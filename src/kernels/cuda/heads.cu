// Norm, rotation and store of heads: a block for each head of a row's queries, keys and values.
#include <cuda_bf16.h>

#include "base/error.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"

namespace sluice::cuda {
namespace {

constexpr int kWidest = 256;

struct Call {
  Heads heads;
  PositionOf position_of;
  KvLayer cache;
};

/// The sum of `value` over the block.
__device__ float block_sum(float value) {
  __shared__ float of_warps[kWidest / kWarp];
  value = warp_sum(value);
  if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = value;
  __syncthreads();
  float sum = 0;
  for (int w = 0; w < static_cast<int>(blockDim.x) / kWarp; ++w) sum += of_warps[w];
  return sum;
}

// Thread t has element t of the head.
template <class Value>
__global__ void heads_kernel(const __grid_constant__ Call c) {
  __shared__ float values[kWidest];
  let_next_begin();
  wait_for_previous();
  const Heads& h = c.heads;
  const int dim = static_cast<int>(c.cache.head_dim), half = static_cast<int>(h.half);
  const int t = static_cast<int>(threadIdx.x);
  const int64_t row = blockIdx.y, kv_heads = c.cache.kv_heads;
  int64_t head = blockIdx.x;
  const bool is_q = head < h.heads;
  if (!is_q) head -= h.heads;
  const bool is_v = !is_q && head >= kv_heads;
  if (is_v) {
    head -= kv_heads;
    if (t < dim) {
      c.cache.value<Value>(head, c.position_of(row))[t] =
          static_cast<Value>(h.v[(row * kv_heads + head) * dim + t]);
    }
    return;
  }
  float* from = is_q ? h.q + (row * h.heads + head) * dim : h.k + (row * kv_heads + head) * dim;
  const float* weight = is_q ? h.q_norm : h.k_norm;
  float value = t < dim ? from[t] : 0.0f;
  if (weight != nullptr) {
    const float factor = 1.0f / sqrtf(block_sum(value * value) / static_cast<float>(dim) + h.epsilon);
    if (t < dim) value = value * factor * weight[t];
  }
  values[t] = value;
  __syncthreads();
  if (t >= dim) return;
  if (t < 2 * half) {
    const int at = t < half ? t : t - half;
    const float cos = h.cos[row * half + at], sin = h.sin[row * half + at];
    value = t < half ? value * cos - values[t + half] * sin : value * cos + values[t - half] * sin;
  }
  if (is_q) {
    from[t] = value;
  } else {
    c.cache.key<Value>(head, c.position_of(row))[t] = static_cast<Value>(value);
  }
}

}  // namespace

void heads_to_cache(const CudaContext& cuda, const Heads& heads, const Positions& positions,
                    const KvLayer& cache) {
  SLUICE_CHECK_MSG(cache.head_dim <= kWidest, "heads wider than 256");
  if (heads.rows == 0) return;
  const dim3 grid(static_cast<unsigned>(heads.heads + 2 * cache.kv_heads), static_cast<unsigned>(heads.rows));
  const unsigned threads = blocks_for(cache.head_dim, kWarp) * kWarp;
  const Call call{heads, PositionOf(positions), cache};
  if (cache.format == KvFormat::kBf16) {
    launch_behind(cuda, heads_kernel<__nv_bfloat16>, grid, threads, call);
  } else {
    launch_behind(cuda, heads_kernel<float>, grid, threads, call);
  }
}

}  // namespace sluice::cuda
