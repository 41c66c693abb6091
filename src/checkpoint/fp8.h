// The storage layouts of eight-bit floats (e4m3): with a scale for the matrix, a row, or a block of 128 x
// 128.
#pragma once

#include <string>

#include "checkpoint/stored_matrix.h"

namespace sluice::fp8 {

/// Whether `module` is stored in e4m3, with scales or without.
bool is_stored(const Checkpoint& checkpoint, const std::string& module);

/// The matrix [n, k] of `module`, for which is_stored holds. Throws as find_matrix.
StoredMatrix find(const Checkpoint& checkpoint, const std::string& module, int64_t n, int64_t k);

/// The format of e4m3 weights [n, k] whose scales have this shape. A scale of one element without a second
/// dimension is the whole matrix's. Throws Error kBadFile with the shapes that would do.
WeightFormat format_of(const Tensor& scale, std::span<const int64_t> shape, int64_t n, int64_t k);

/// Scales as f32, for read_scale: one for each element of `out`, or one for all.
void read_scales(const StoredBytes& scale, std::span<float> out);

}  // namespace sluice::fp8
