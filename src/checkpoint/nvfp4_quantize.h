// Quantising a matrix to NVFP4, in the layout of checkpoint/weight_format.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"

namespace sluice::nvfp4 {

struct QuantizedMatrix {
  std::vector<uint8_t> codes;   // [n, k/2], low nibble = even column
  std::vector<uint8_t> scales;  // [n, k/16] e4m3
  float global = 1.0f;          // value = code * (scale * global)
};

/// `values` is [n, k], row by row, all finite; k is a multiple of 16. The global is amax / (6 * 448), so that
/// the largest value's group has the largest scale; of the scales around a group's amax / 6 the one with the
/// least squared error is taken, which costs some groups a clipped largest value and gains on all others. The
/// result does not depend on the number of threads.
QuantizedMatrix quantize(std::span<const float> values, int64_t n, int64_t k, ThreadPool& pool);

}  // namespace sluice::nvfp4
