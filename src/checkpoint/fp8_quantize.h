// Quantising a matrix to FP8 in blocks, in the layout of checkpoint/weight_format.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"

namespace sluice::fp8 {

struct QuantizedMatrix {
  std::vector<uint8_t> codes;  // [n, k] e4m3
  std::vector<float> scales;   // [ceil(n / 128), ceil(k / 128)]: value = code * scale
};

/// `values` is [n, k], row by row, all finite. A block's scale is amax / 448, so that its largest value has
/// the largest code; every other value gets the nearest one. A block without values to speak of (all zero, or
/// so small that the quotient vanishes) becomes zeros with a scale of 1. The result does not depend on the
/// number of threads.
QuantizedMatrix quantize(std::span<const float> values, int64_t n, int64_t k, ThreadPool& pool);

}  // namespace sluice::fp8
