// FP8 quantisation of matrices: layout, error, edge cases.
#include "checkpoint/fp8_quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "base/scalar.h"
#include "checkpoint/weight_format.h"

namespace sluice {
namespace {

std::vector<float> decode(const fp8::QuantizedMatrix& matrix, int64_t n, int64_t k) {
  const EncodedMatrix encoded{WeightFormat::kFp8Block, n, k, matrix.codes.data(), matrix.scales.data(), 1};
  std::vector<float> values(static_cast<size_t>(n * k));
  for (int64_t row = 0; row < n; ++row) decode_row(encoded, row, values.data() + row * k);
  return values;
}

TEST(QuantizeFp8, DecodesWithinHalfAStepOfEveryValue) {
  constexpr unsigned kSeed = 20261130;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  ThreadPool pool(2);
  for (const auto& [n, k] :
       {std::pair<int64_t, int64_t>{128, 128}, {130, 257}, {1, 1}, {300, 64}, {5, 400}}) {
    std::vector<float> values(static_cast<size_t>(n * k));
    std::normal_distribution<float> normal;
    for (float& value : values) value = 0.02f * normal(random);
    const auto matrix = fp8::quantize(values, n, k, pool);
    const auto decoded = decode(matrix, n, k);
    for (size_t i = 0; i < values.size(); ++i) {
      const auto row = static_cast<int64_t>(i) / k, column = static_cast<int64_t>(i) % k;
      const float scale = matrix.scales[static_cast<size_t>(row / 128 * ((k + 127) / 128) + column / 128)];
      // Three bits behind the leading one; below 2^-6 the steps are 2^-9.
      const float half_step = std::max(std::fabs(values[i]) / 16, scale * 0x1p-10f);
      ASSERT_NEAR(decoded[i], values[i], half_step * 1.0001f) << n << " x " << k << ", element " << i;
    }
  }
}

TEST(QuantizeFp8, GivesTheLargestValueOfEachBlockTheLargestCode) {
  std::vector<float> values(2 * 256, 0.001f);
  values[3] = -7.0f;         // block 0
  values[256 + 200] = 0.5f;  // block 1
  ThreadPool pool(1);
  const auto matrix = fp8::quantize(values, 2, 256, pool);
  ASSERT_EQ(matrix.scales.size(), 2u);
  EXPECT_FLOAT_EQ(matrix.scales[0], 7.0f / 448);
  EXPECT_FLOAT_EQ(matrix.scales[1], 0.5f / 448);
  EXPECT_EQ(e4m3_to_f32(matrix.codes[3]), -448.0f);
  EXPECT_EQ(e4m3_to_f32(matrix.codes[256 + 200]), 448.0f);
}

TEST(QuantizeFp8, ZerosAndTracesOfValuesBecomeZerosWithAScaleOfOne) {
  ThreadPool pool(1);
  for (const float value : {0.0f, 1e-40f, -1e-37f}) {
    const std::vector<float> values(130, value);
    const auto matrix = fp8::quantize(values, 1, 130, pool);
    EXPECT_EQ(matrix.scales, (std::vector<float>{1, 1})) << value;
    EXPECT_EQ(matrix.codes, std::vector<uint8_t>(130, 0)) << value;
  }
}

TEST(QuantizeFp8, HoldsTheLargestFloats) {
  ThreadPool pool(1);
  const auto matrix = fp8::quantize(std::vector<float>{3.4e38f, -3.4e38f}, 1, 2, pool);
  const auto decoded = decode(matrix, 1, 2);
  EXPECT_NEAR(decoded[0] / 3.4e38f, 1, 1e-5);
  EXPECT_NEAR(decoded[1] / 3.4e38f, -1, 1e-5);
}

}  // namespace
}  // namespace sluice
