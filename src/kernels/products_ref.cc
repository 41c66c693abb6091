// The reference of the dot products.
#include <algorithm>
#include <vector>

#include "kernels/bf16_rows.h"
#include "kernels/products.h"

namespace sluice {
namespace {

void prepare(const float* x, WeightFormat, Compute compute, int64_t k, float* prepared) {
  compute == Compute::kBf16 ? round_to_bf16(x, k, prepared) : static_cast<void>(std::copy_n(x, k, prepared));
}

void multiply(const float* const* x, int64_t rows, const Matrix& w, int64_t first, int64_t count,
              float* const* y) {
  const bool bf16 = w.compute == Compute::kBf16;
  const int64_t columns = bf16 ? bf16_factor_columns(w) : w.k;
  std::vector<float> values(static_cast<size_t>(w.k));
  for (int64_t j = 0; j < count; ++j) {
    bf16 ? decode_row_bf16(w, first + j, values.data()) : decode_row(w, first + j, values.data());
    for (int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (int64_t block = 0; block * columns < w.k; ++block) {
        double part = 0;
        for (int64_t k = block * columns; k < std::min(w.k, (block + 1) * columns); ++k)
          part += static_cast<double>(x[r][k]) * static_cast<double>(values[static_cast<size_t>(k)]);
        sum += part * static_cast<double>(bf16 ? bf16_factor(w, first + j, block) : 1.0f);
      }
      y[r][j] = static_cast<float>(sum);
    }
  }
}

}  // namespace

const ProductKernels kProductsRef = {SimdLevel::kScalar, prepare, multiply};

}  // namespace sluice
