// Rounding, and decoding by definition.
#include "kernels/bf16_rows.h"

#include <cstring>

#include "base/scalar.h"

namespace sluice {
namespace {

constexpr float kNoScale = 1.0f;

float scale_at(const EncodedMatrix& w, int64_t index) {  // scales need not be aligned
  float value;
  std::memcpy(&value, static_cast<const char*>(w.scale) + index * static_cast<int64_t>(sizeof value),
              sizeof value);
  return value;
}

}  // namespace

void round_to_bf16(const float* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = bf16_to_f32(f32_to_bf16(x[i]));
}

void decode_row_bf16(const EncodedMatrix& w, int64_t row, float* values) {
  EncodedMatrix plain = w;
  plain.global = 1.0f;
  switch (w.format) {
    case WeightFormat::kFp8Block:
    case WeightFormat::kFp8Row:
      plain = {
          WeightFormat::kFp8Row, 1, w.k, static_cast<const uint8_t*>(w.data) + row * w.k, &kNoScale, 1.0f};
      return decode_row(plain, 0, values);
    case WeightFormat::kF32:
    case WeightFormat::kF16:
      decode_row(plain, row, values);
      return round_to_bf16(values, w.k, values);
    case WeightFormat::kBf16:
    case WeightFormat::kNvfp4:
    case WeightFormat::kMxfp4:
      return decode_row(plain, row, values);
  }
}

float bf16_factor(const EncodedMatrix& w, int64_t row, int64_t block) {
  if (w.format == WeightFormat::kFp8Row) return scale_at(w, row);
  if (w.format != WeightFormat::kFp8Block) return w.global;
  const int64_t blocks = (w.k + kFp8BlockSize - 1) / kFp8BlockSize;
  return scale_at(w, row / kFp8BlockSize * blocks + block);
}

int64_t bf16_factor_columns(const EncodedMatrix& w) {
  return w.format == WeightFormat::kFp8Block ? kFp8BlockSize : w.k;
}

}  // namespace sluice
