// A view of a weight matrix as kernels read it.
#pragma once

#include "checkpoint/weight_format.h"
#include "device/stream.h"

namespace sluice {

/// How a product reads its operands (docs/numerics.md); sums are f32 in both.
/// kF32: activations and weights as they are, the reference.
/// kBf16: activations rounded to bf16; weights as numbers that bf16 holds exactly, whose other factors
/// multiply f32 sums.
enum class Compute { kF32, kBf16 };
constexpr std::string_view name_of(Compute compute) { return compute == Compute::kBf16 ? "bf16" : "f32"; }

/// A weight matrix [n, k], rows contiguous, in device memory.
struct Matrix : EncodedMatrix {
  Compute compute = Compute::kF32;

  ByteRange data_range() const { return {data, weight_bytes(format, n, k)}; }
  ByteRange scale_range() const { return {scale, scale_bytes(format, n, k)}; }
};

}  // namespace sluice
