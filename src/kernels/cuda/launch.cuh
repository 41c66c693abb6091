// Shapes of launches, and sums over a warp.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "device/stream.h"
#include "kernels/positions.h"

namespace sluice::cuda {

constexpr int kWarp = 32;

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline unsigned blocks_for(int64_t items, int64_t per_block) {
  return static_cast<unsigned>(ceil_div(items, per_block));
}

/// Positions as a kernel takes them.
struct PositionOf {
  int64_t first;
  const int32_t* of_rows;
  explicit PositionOf(const Positions& positions) : first(positions.first), of_rows(positions.of_rows) {}
  __device__ int64_t operator()(int64_t row) const {
    return of_rows == nullptr ? first + row : static_cast<int64_t>(of_rows[row]);
  }
};

/// The sum of `value` over the warp, in every lane; the order of the additions is fixed.
__device__ inline float warp_sum(float value) {
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  return value;
}

}  // namespace sluice::cuda
