// The dot products that every matrix kernel is made of: one warp, one weight row, a few rows of activations.
#pragma once

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/weights.cuh"

namespace sluice::cuda {

/// sums[i] = x[i] . row `row` of w, in every lane, for i < kRows; x[i] may be null (its sum is 0). A lane
/// takes every 32nd chunk of sixteen values, in order; then the lanes are added. In bf16 x is rounded as it
/// is read. So a sum depends on its own
/// x and the weight row.
template <class Decode, int kRows>
__device__ void warp_dots(const WeightView& w, int64_t row, const float* const* x, float* sums) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t chunks = ceil_div(w.k, kChunk);
#pragma unroll
  for (int i = 0; i < kRows; ++i) sums[i] = 0;
  for (int64_t c = lane; c < chunks; c += kWarp) {
    const int count = static_cast<int>(min(static_cast<int64_t>(kChunk), w.k - c * kChunk));
    float weights[kChunk];
    Decode::chunk(w, row, c, count, weights);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (x[i] == nullptr) continue;
      const float* values = x[i] + c * kChunk;
#pragma unroll
      for (int j = 0; j < kChunk; ++j) {
        if (j < count) sums[i] = fmaf(w.bf16 ? rounded_to_bf16(values[j]) : values[j], weights[j], sums[i]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) sums[i] = warp_sum(sums[i]) * w.sum_factor();
}

}  // namespace sluice::cuda
