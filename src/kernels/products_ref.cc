// The reference of the dot products, and the choice of the best.
#include <algorithm>
#include <vector>

#include "base/cpu.h"
#include "kernels/products.h"

namespace sluice {

void products_ref(const float* const* x, int64_t rows, const Matrix& w, int64_t first, int64_t count,
                  float* const* y) {
  std::vector<float> values(static_cast<size_t>(w.k));
  for (int64_t j = 0; j < count; ++j) {
    decode_row(w, first + j, values.data());
    for (int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (int64_t k = 0; k < w.k; ++k)
        sum += static_cast<double>(x[r][k]) * static_cast<double>(values[static_cast<size_t>(k)]);
      y[r][j] = static_cast<float>(sum);
    }
  }
}

Products products() {
  static const Products best = simd_level() >= SimdLevel::kAvx2 ? products_avx2 : products_ref;
  return best;
}

int64_t products_grain(int64_t rows, int64_t k) {
  // Waking a thread costs about 10 us: 64 K multiplications are worth it, fewer are not.
  constexpr int64_t kWorthwhile = 64 * 1024;
  return std::max<int64_t>(8, kWorthwhile / std::max<int64_t>(1, rows * k));
}

}  // namespace sluice
