// What products in bf16 read (Compute::kBf16, docs/numerics.md): rounded activations, and weights apart from
// the factors that bf16 has no room for.
#pragma once

#include <cstdint>

#include "kernels/matrix.h"

namespace sluice {

/// y = x as bf16 numbers, to nearest, ties to even; both [n], they may be the same.
void round_to_bf16(const float* x, int64_t n, float* y);

/// Row `row` of w in numbers that bf16 holds exactly, [k]: FP8 without its scales, NVFP4 without its global,
/// F32 and F16 rounded. The sum of a block of kFp8BlockSize columns (FP8 with scales for blocks), or of the
/// whole row, is to be multiplied by bf16_factor.
void decode_row_bf16(const EncodedMatrix& w, int64_t row, float* values);
float bf16_factor(const EncodedMatrix& w, int64_t row, int64_t block);
/// Columns that share a factor: kFp8BlockSize or k.
int64_t bf16_factor_columns(const EncodedMatrix& w);

}  // namespace sluice
