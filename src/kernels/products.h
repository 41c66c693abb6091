// Dot products of activation rows with weight rows: what every matrix op on the host is made of.
//
// y[r][j] = sum over k of x[r][k] * w(first + j, k), for r < rows and j < count. The arithmetic of one
// y[r][j] depends on x[r] and that weight row alone: not on the other rows, on how many there are, or on
// where a block begins. This is what makes chunked, unchunked and decoded logits equal to the last bit.
#pragma once

#include <cstdint>

#include "kernels/matrix.h"

namespace sluice {

/// Rows are given by pointers (an expert's rows lie scattered): x[r] has w.k values, y[r] gets `count`
/// values. Where w.compute is bf16, x holds bf16 numbers already (RoundedRows).
using Products = void (*)(const float* const* x, int64_t rows, const Matrix& w, int64_t first, int64_t count,
                          float* const* y);

/// Sums in double precision, one element after the other.
void products_ref(const float* const* x, int64_t rows, const Matrix& w, int64_t first, int64_t count,
                  float* const* y);
/// Sums in eight f32 lanes. Only where the processor has AVX2, FMA and F16C.
void products_avx2(const float* const* x, int64_t rows, const Matrix& w, int64_t first, int64_t count,
                   float* const* y);

/// The best one for this processor.
Products products();

/// Weight rows worth one piece of parallel work, for x rows of length k.
int64_t products_grain(int64_t rows, int64_t k);

}  // namespace sluice
