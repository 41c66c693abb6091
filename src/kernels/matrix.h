// A view of a weight matrix as kernels read it.
#pragma once

#include <cstdint>

#include "checkpoint/weights.h"
#include "device/stream.h"

namespace sluice {

/// A weight matrix [n, k], rows contiguous, in device memory. `global` multiplies every value (1 where
/// unused).
struct Matrix {
  WeightFormat format = WeightFormat::kF32;
  int64_t n = 0, k = 0;
  const void* data = nullptr;   // weight_bytes(format, n, k)
  const void* scale = nullptr;  // scale_bytes(format, n, k), null where the format has none
  float global = 1.0f;

  ByteRange data_range() const { return {data, weight_bytes(format, n, k)}; }
  ByteRange scale_range() const { return {scale, scale_bytes(format, n, k)}; }
};

}  // namespace sluice
