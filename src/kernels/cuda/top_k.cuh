// The best scores of a row, by one warp.
#pragma once

#include <cmath>
#include <type_traits>

#include "kernels/cuda/launch.cuh"

namespace sluice::cuda {

constexpr int kMostScoresPerLane = 32;  // 1024 experts

/// Scores [n] of a row, in registers: lane l holds scores l, l + 32, ...; those that were taken are gone.
template <int kPerLane>
struct WarpScores {
  float scores[kPerLane];
  uint32_t there = 0;  // bit i: scores[i] has not been taken

  __device__ WarpScores(const float* row, int n, int lane) {
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      const bool inside = lane + kWarp * i < n;
      scores[i] = inside ? row[lane + kWarp * i] : 0;
      there |= static_cast<uint32_t>(inside) << i;
    }
  }

  /// The id of the best score that is left, in every lane, and the score; ties to the lower id. Scores that
  /// are not numbers come last. There is one left.
  __device__ int take(int lane, float& best) {
    float score = -INFINITY;
    int id = 1 << 30;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      if ((there >> i & 1u) == 0) continue;
      const bool better = scores[i] > score || id == 1 << 30;
      score = better ? scores[i] : score;
      id = better ? lane + kWarp * i : id;
    }
#pragma unroll
    for (int step = kWarp / 2; step > 0; step /= 2) {
      const float other = __shfl_xor_sync(~0u, score, step);
      const int other_id = __shfl_xor_sync(~0u, id, step);
      const bool better =
          id == 1 << 30 || (other_id != 1 << 30 && (other > score || (other == score && other_id < id)));
      score = better ? other : score;
      id = better ? other_id : id;
    }
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      if (lane + kWarp * i == id) there &= ~(1u << i);
    }
    best = score;
    return id;
  }
};

/// Calls body(std::integral_constant<int, scores a lane>) for n scores a row.
template <class Body>
void with_scores_per_lane(int64_t n, Body&& body) {
  if (n <= 4 * kWarp) return body(std::integral_constant<int, 4>());
  if (n <= 8 * kWarp) return body(std::integral_constant<int, 8>());
  if (n <= 16 * kWarp) return body(std::integral_constant<int, 16>());
  body(std::integral_constant<int, kMostScoresPerLane>());
}

}  // namespace sluice::cuda
