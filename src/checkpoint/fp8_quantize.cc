// FP8 quantisation, a block of 128 x 128 at a time.
#include "checkpoint/fp8_quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/scalar.h"
#include "checkpoint/weight_format.h"

namespace sluice::fp8 {
namespace {

constexpr float kMaxE4m3 = 448.0f;

/// Part of a row-major matrix of `stride` columns: from `begin` on, `rows` times `columns`.
struct Block {
  size_t begin = 0, rows = 0, columns = 0, stride = 0;
};

float scale_of(const float* values, const Block& block) {
  float amax = 0;
  for (size_t r = 0; r < block.rows; ++r) {
    const float* row = values + block.begin + r * block.stride;
    for (size_t c = 0; c < block.columns; ++c) amax = std::max(amax, std::fabs(row[c]));
  }
  const float scale = amax / kMaxE4m3;
  return scale < std::numeric_limits<float>::min() ? 0.0f : scale;
}

void encode(const float* values, const Block& block, float scale, uint8_t* codes) {
  for (size_t r = 0; r < block.rows; ++r) {
    const size_t row = block.begin + r * block.stride;
    for (size_t c = 0; c < block.columns; ++c) {
      codes[row + c] = scale == 0 ? uint8_t{0} : f32_to_e4m3(values[row + c] / scale);
    }
  }
}

}  // namespace

QuantizedMatrix quantize(std::span<const float> values, int64_t n, int64_t k, ThreadPool& pool) {
  SLUICE_CHECK(n >= 0 && k >= 0 && values.size() == static_cast<size_t>(n * k));
  const int64_t down = (n + kFp8BlockSize - 1) / kFp8BlockSize,
                across = (k + kFp8BlockSize - 1) / kFp8BlockSize;
  QuantizedMatrix result;
  result.codes.resize(values.size());
  result.scales.resize(static_cast<size_t>(down * across));
  pool.parallel_for(down * across, 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / across * kFp8BlockSize, column = i % across * kFp8BlockSize;
      const Block block{static_cast<size_t>(row * k + column),
                        static_cast<size_t>(std::min(kFp8BlockSize, n - row)),
                        static_cast<size_t>(std::min(kFp8BlockSize, k - column)), static_cast<size_t>(k)};
      const float scale = scale_of(values.data(), block);
      encode(values.data(), block, scale, result.codes.data());
      result.scales[static_cast<size_t>(i)] = scale == 0 ? 1.0f : scale;
    }
  });
  return result;
}

}  // namespace sluice::fp8
