// Matrix products of activations with weights.
#pragma once

#include "device/stream.h"
#include "kernels/matrix.h"

namespace sluice {

/// y[r, :] = x[r, :] * w^T + bias. x [rows, w.k], y [rows, w.n], bias [w.n] or null.
void linear(Stream& stream, const float* x, int64_t rows, const Matrix& w, const float* bias, float* y);

/// y[r, :] = row ids[r] of `table` [vocabulary, hidden]. The ids are checked by the caller. y [rows,
/// table.k].
void embedding(Stream& stream, const int32_t* ids, int64_t rows, const Matrix& table, float* y);

/// Cuts x [rows, 2n] into its left and right half, [rows, n] each.
void split_columns(Stream& stream, const float* x, int64_t rows, int64_t n, float* left, float* right);

}  // namespace sluice
