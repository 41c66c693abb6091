// The choice of the products' instruction set.
#include "kernels/products.h"

#include <algorithm>

namespace sluice {

std::vector<const ProductKernels*> all_products() {
  std::vector<const ProductKernels*> all = {&kProductsRef};
#if defined(__x86_64__)
  for (const ProductKernels* kernels : {&kProductsAvx2, &kProductsAvx512}) {
    if (kernels->level <= best_simd_level()) all.push_back(kernels);
  }
#endif
  return all;
}

const ProductKernels& products() {
  static const ProductKernels& best = [&]() -> const ProductKernels& {
    const ProductKernels* found = &kProductsRef;
    for (const ProductKernels* kernels : all_products()) {
      if (kernels->level <= simd_level()) found = kernels;
    }
    return *found;
  }();
  return best;
}

int64_t products_grain(int64_t rows, int64_t k) {
  // Waking a thread costs about 10 us: 64 K multiplications are worth it, fewer are not. Many rows share what
  // is decoded, in panels of 24.
  constexpr int64_t kWorthwhile = 64 * 1024;
  return std::max<int64_t>(rows < 16 ? 8 : 24, kWorthwhile / std::max<int64_t>(1, rows * k));
}

}  // namespace sluice
