// The reference of the dot products, and how each format decodes.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/cpu.h"
#include "base/error.h"
#include "base/scalar.h"
#include "kernels/products.h"

namespace sluice {
namespace {

uint16_t read_u16(const void* data, int64_t index) {  // checkpoint bytes need not be aligned
  uint16_t value;
  std::memcpy(&value, static_cast<const char*>(data) + 2 * index, 2);
  return value;
}

float read_f32(const void* data, int64_t index) {
  float value;
  std::memcpy(&value, static_cast<const char*>(data) + 4 * index, 4);
  return value;
}

}  // namespace

void decode_row(const Matrix& w, int64_t row, float* values) {
  const int64_t begin = row * w.k;
  switch (w.format) {
    case WeightFormat::kF32:
      for (int64_t k = 0; k < w.k; ++k) values[k] = read_f32(w.data, begin + k);
      return;
    case WeightFormat::kF16:
      for (int64_t k = 0; k < w.k; ++k) values[k] = f16_to_f32(read_u16(w.data, begin + k));
      return;
    case WeightFormat::kBf16:
      for (int64_t k = 0; k < w.k; ++k) values[k] = bf16_to_f32(read_u16(w.data, begin + k));
      return;
    case WeightFormat::kNvfp4: {
      const auto* codes = static_cast<const uint8_t*>(w.data) + begin / 2;
      const auto* scales = static_cast<const uint8_t*>(w.scale) + begin / 16;
      for (int64_t k = 0; k < w.k; ++k) {
        const uint8_t code = k % 2 == 0 ? codes[k / 2] & 15 : codes[k / 2] >> 4;
        values[k] = e2m1_to_f32(code) * (kE4m3Values[scales[k / 16]] * w.global);
      }
      return;
    }
  }
}

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
