// Top-k routing: a warp a row, ties to the lower id.
#include <cmath>

#include "base/error.h"

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/top_k.cuh"

namespace sluice::cuda {
namespace {

constexpr int kThreads = 128;

template <int kPerLane>
__global__ void router_kernel(const float* logits, int64_t rows, int experts, int k, bool renormalise,
                              int32_t* ids, float* weights) {
  let_next_begin();
  wait_for_previous();
  const int64_t row = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kWarp;
  if (row >= rows) return;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  WarpScores<kPerLane> left(logits + row * experts, experts, lane);
  const WarpScores<kPerLane> all = left;
  float highest = 0, total = 0, chosen = 0;
  for (int rank = 0; rank < k; ++rank) {
    float score;
    const int id = left.take(lane, score);
    if (rank == 0) {
      highest = score;
#pragma unroll
      for (int i = 0; i < kPerLane; ++i)
        total += (all.there >> i & 1u) ? expf(all.scores[i] - highest) : 0.0f;
      total = warp_sum(total);
    }
    const float weight = expf(score - highest) / total;
    chosen += weight;
    if (lane == 0) {
      ids[row * k + rank] = id;
      weights[row * k + rank] = weight;
    }
  }
  __syncwarp();
  if (!renormalise) return;
  for (int i = lane; i < k; i += kWarp) weights[row * k + i] /= chosen;
}

}  // namespace

void router_top_k(const CudaContext& cuda, const float* logits, int64_t rows, int64_t experts, int64_t k,
                  bool renormalise, int32_t* ids, float* weights) {
  SLUICE_CHECK(experts <= kMostScoresPerLane * kWarp);
  if (rows == 0) return;
  with_scores_per_lane(experts, [&](auto per_lane) {
    launch_behind(cuda, router_kernel<per_lane.value>, blocks_for(rows, kThreads / kWarp), kThreads, logits,
                  rows, static_cast<int>(experts), static_cast<int>(k), renormalise, ids, weights);
  });
}

}  // namespace sluice::cuda
