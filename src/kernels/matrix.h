// A view of a weight matrix as kernels read it.
#pragma once

#include "checkpoint/weight_format.h"
#include "device/stream.h"

namespace sluice {

/// A weight matrix [n, k], rows contiguous, in device memory.
struct Matrix : EncodedMatrix {
  ByteRange data_range() const { return {data, weight_bytes(format, n, k)}; }
  ByteRange scale_range() const { return {scale, scale_bytes(format, n, k)}; }
};

}  // namespace sluice
