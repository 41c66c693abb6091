// Dot products of activation rows with weight rows: what every matrix op on the host is made of.
//
// y[r][j] = sum over k of x[r][k] * w(first + j, k), for r < rows and j < count. The arithmetic of one
// y[r][j] depends on x[r] and that weight row alone: not on the other rows, on how many there are, or on
// where a block begins. This is what makes chunked, unchunked and decoded logits equal to the last bit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/cpu.h"
#include "kernels/matrix.h"

namespace sluice {

/// The products of one instruction set. Rows of x are prepared once and multiplied many times: rounded where
/// products compute in bf16, and in the order in which this set decodes a format's columns.
struct ProductKernels {
  SimdLevel level;
  /// x [k] for products with matrices of this format and compute, into `prepared` [k].
  void (*prepare)(const float* x, WeightFormat format, Compute compute, int64_t k, float* prepared);
  /// Rows are given by pointers (an expert's rows lie scattered): x[r] is a prepared row, y[r] gets `count`
  /// values.
  void (*multiply)(const float* const* x, int64_t rows, const Matrix& w, int64_t first, int64_t count,
                   float* const* y);
};

/// Sums in double precision, one element after the other.
extern const ProductKernels kProductsRef;
/// Sums in eight f32 lanes. With AVX2, FMA and F16C.
extern const ProductKernels kProductsAvx2;
/// Sums in sixteen f32 lanes. With AVX-512 F, BW, VL and DQ.
extern const ProductKernels kProductsAvx512;

/// The best ones for this processor.
const ProductKernels& products();
/// All that this processor has, the reference first.
std::vector<const ProductKernels*> all_products();

/// Rows of activations [rows, k], prepared for products with matrices of one format.
class PreparedRows {
 public:
  PreparedRows(WeightFormat format, Compute compute, int64_t rows, int64_t k)
      : format_(format),
        compute_(compute),
        k_(k),
        rows_(std::make_unique_for_overwrite<float[]>(static_cast<size_t>(rows * k))) {}
  void prepare(int64_t r, const float* x) {
    products().prepare(x, format_, compute_, k_, rows_.get() + r * k_);
  }
  /// Rows worth one piece of parallel work.
  int64_t grain() const { return std::max<int64_t>(1, 64 * 1024 / std::max<int64_t>(1, k_)); }
  const float* row(int64_t r) const { return rows_.get() + r * k_; }

 private:
  WeightFormat format_;
  Compute compute_;
  int64_t k_;
  std::unique_ptr<float[]> rows_;
};

/// Weight rows worth one piece of parallel work, for x rows of length k.
int64_t products_grain(int64_t rows, int64_t k);

}  // namespace sluice
