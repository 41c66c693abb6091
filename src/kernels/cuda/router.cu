// Top-k routing: a warp a row, ties to the lower id.
#include <cmath>

#include "base/error.h"

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"

namespace sluice::cuda {
namespace {

constexpr int kMostPerLane = 32;  // 1024 experts
constexpr int kThreads = 128;

// The better of two candidates: the higher score, then the lower id.
__device__ void take_better(float& score, int& id, float other_score, int other_id) {
  if (other_score > score || (other_score == score && other_id < id)) {
    score = other_score;
    id = other_id;
  }
}

__global__ void router_kernel(const float* logits, int64_t rows, int experts, int k, bool renormalise,
                              int32_t* ids, float* weights) {
  const int64_t row = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kWarp;
  if (row >= rows) return;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const float* in = logits + row * experts;
  uint32_t taken = 0;  // bit i: expert lane + 32 i
  float highest = 0, total = 0, chosen = 0;
  for (int rank = 0; rank < k; ++rank) {
    float score = -INFINITY;
    int id = experts;
    for (int i = 0; lane + kWarp * i < experts; ++i) {
      if (!(taken >> i & 1u)) take_better(score, id, in[lane + kWarp * i], lane + kWarp * i);
    }
#pragma unroll
    for (int step = kWarp / 2; step > 0; step /= 2) {
      const float other = __shfl_xor_sync(~0u, score, step);
      take_better(score, id, other, __shfl_xor_sync(~0u, id, step));
    }
    if (rank == 0) {
      highest = score;
      for (int e = lane; e < experts; e += kWarp) total += expf(in[e] - highest);
      total = warp_sum(total);
    }
    if (id % kWarp == lane) taken |= 1u << (id / kWarp);
    const float weight = expf(score - highest) / total;
    chosen += weight;
    if (lane == 0) {
      ids[row * k + rank] = id;
      weights[row * k + rank] = weight;
    }
  }
  __syncwarp();
  if (renormalise && lane < k) {
    for (int i = lane; i < k; i += kWarp) weights[row * k + i] /= chosen;
  }
}

}  // namespace

void router_top_k(const CudaContext& cuda, const float* logits, int64_t rows, int64_t experts, int64_t k,
                  bool renormalise, int32_t* ids, float* weights) {
  SLUICE_CHECK(experts <= kMostPerLane * kWarp);
  if (rows == 0) return;
  router_kernel<<<blocks_for(rows, kThreads / kWarp), kThreads, 0, cuda.stream>>>(
      logits, rows, static_cast<int>(experts), static_cast<int>(k), renormalise, ids, weights);
}

}  // namespace sluice::cuda
