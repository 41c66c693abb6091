// Matrix products of activations with weights.
#pragma once

#include <array>
#include <initializer_list>

#include "base/error.h"
#include "device/stream.h"
#include "kernels/matrix.h"

namespace sluice {

/// y[r, :] = x[r, :] * w^T + bias. x [rows, w.k], y [rows, w.n], bias [w.n] or null.
void linear(Stream& stream, const float* x, int64_t rows, const Matrix& w, const float* bias, float* y);

/// One of several products of the same activations x [rows, k], and what becomes of it.
struct LinearPart {
  Matrix w;                     // [n, k]
  const float* bias = nullptr;  // [n] or null
  float* y = nullptr;           // [rows, n]
  Matrix up = {};               // [n, k]; where it has data: y = silu(x * w^T) * (x * up^T), without bias
  bool add = false;             // y += in place of y =
  const float* gate = nullptr;  // [rows] or null; with add: y[r, :] += sigmoid(gate[r]) * ...
};
inline constexpr size_t kMostParts = 4;

/// Some parts, by value.
class LinearParts {
 public:
  LinearParts(std::initializer_list<LinearPart> parts) {
    SLUICE_CHECK(parts.size() <= kMostParts);
    for (const LinearPart& part : parts) parts_[count_++] = part;
  }
  const LinearPart* begin() const { return parts_.data(); }
  const LinearPart* end() const { return parts_.data() + count_; }
  size_t size() const { return count_; }

 private:
  std::array<LinearPart, kMostParts> parts_;
  size_t count_ = 0;
};

/// Up to kMostParts products at once: each as linear() would give it, then silu_and_multiply(), add() or
/// add_gated() (kernels/norm.h), to the bit. No part reads what another one writes.
void linear_parts(Stream& stream, const float* x, int64_t rows, std::initializer_list<LinearPart> parts);

/// y[r, :] = row ids[r] of `table` [vocabulary, hidden]. The ids are checked by the caller. y [rows,
/// table.k].
void embedding(Stream& stream, const int32_t* ids, int64_t rows, const Matrix& table, float* y);

}  // namespace sluice
