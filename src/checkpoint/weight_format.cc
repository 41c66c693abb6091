// Formats by name and size, and their decoding by definition.
#include "checkpoint/weight_format.h"

#include <cstring>

#include "base/error.h"
#include "base/scalar.h"

namespace sluice {
namespace {

template <class T>
T read(const void* data, int64_t index) {  // checkpoint bytes need not be aligned
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

int64_t blocks(int64_t size) { return (size + kFp8BlockSize - 1) / kFp8BlockSize; }

void decode_fp8(const EncodedMatrix& w, int64_t row, float* values) {
  for (int64_t k = 0; k < w.k; ++k) {
    const int64_t at =
        w.format == WeightFormat::kFp8Row ? row : row / kFp8BlockSize * blocks(w.k) + k / kFp8BlockSize;
    values[k] = kE4m3Values[read<uint8_t>(w.data, row * w.k + k)] * read<float>(w.scale, at);
  }
}

template <class Scale>
void decode_fp4(const EncodedMatrix& w, int64_t row, int64_t group, float* values, Scale scale_of) {
  for (int64_t k = 0; k < w.k; ++k) {
    const auto pair = read<uint8_t>(w.data, (row * w.k + k) / 2);
    const auto code = static_cast<uint8_t>(k % 2 == 0 ? pair & 15 : pair >> 4);
    values[k] = e2m1_to_f32(code) * scale_of(read<uint8_t>(w.scale, (row * w.k + k) / group));
  }
}

}  // namespace

std::string_view name_of(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
      return "f32";
    case WeightFormat::kF16:
      return "f16";
    case WeightFormat::kBf16:
      return "bf16";
    case WeightFormat::kFp8Block:
      return "fp8_block";
    case WeightFormat::kFp8Row:
      return "fp8";
    case WeightFormat::kNvfp4:
      return "nvfp4";
    case WeightFormat::kMxfp4:
      return "mxfp4";
  }
  return "unknown";
}

int64_t column_multiple(WeightFormat format) {
  if (format == WeightFormat::kNvfp4) return kNvfp4Group;
  return format == WeightFormat::kMxfp4 ? kMxfp4Group : 1;
}

size_t weight_bytes(WeightFormat format, int64_t n, int64_t k) {
  SLUICE_CHECK(k % column_multiple(format) == 0);
  const auto numbers = static_cast<size_t>(n * k);
  switch (format) {
    case WeightFormat::kF32:
      return numbers * 4;
    case WeightFormat::kF16:
    case WeightFormat::kBf16:
      return numbers * 2;
    case WeightFormat::kFp8Block:
    case WeightFormat::kFp8Row:
      return numbers;
    case WeightFormat::kNvfp4:
    case WeightFormat::kMxfp4:
      return numbers / 2;
  }
  return 0;
}

size_t scale_bytes(WeightFormat format, int64_t n, int64_t k) {
  SLUICE_CHECK(k % column_multiple(format) == 0);
  switch (format) {
    case WeightFormat::kFp8Block:
      return static_cast<size_t>(blocks(n) * blocks(k)) * sizeof(float);
    case WeightFormat::kFp8Row:
      return static_cast<size_t>(n) * sizeof(float);
    case WeightFormat::kNvfp4:
      return static_cast<size_t>(n * (k / kNvfp4Group));
    case WeightFormat::kMxfp4:
      return static_cast<size_t>(n * (k / kMxfp4Group));
    default:
      return 0;
  }
}

void decode_row(const EncodedMatrix& w, int64_t row, float* values) {
  const int64_t begin = row * w.k;
  switch (w.format) {
    case WeightFormat::kF32:
      for (int64_t k = 0; k < w.k; ++k) values[k] = read<float>(w.data, begin + k);
      return;
    case WeightFormat::kF16:
      for (int64_t k = 0; k < w.k; ++k) values[k] = f16_to_f32(read<uint16_t>(w.data, begin + k));
      return;
    case WeightFormat::kBf16:
      for (int64_t k = 0; k < w.k; ++k) values[k] = bf16_to_f32(read<uint16_t>(w.data, begin + k));
      return;
    case WeightFormat::kFp8Block:
    case WeightFormat::kFp8Row:
      return decode_fp8(w, row, values);
    case WeightFormat::kNvfp4:
      return decode_fp4(w, row, kNvfp4Group, values,
                        [&](uint8_t scale) { return kE4m3Values[scale] * w.global; });
    case WeightFormat::kMxfp4:
      return decode_fp4(w, row, kMxfp4Group, values, [](uint8_t scale) { return e8m0_to_f32(scale); });
  }
}

}  // namespace sluice
