// NVFP4 quantisation: exact cases, and its error against the plain choice of scales.
#include "checkpoint/nvfp4_quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "base/scalar.h"

namespace sluice {
namespace {

constexpr unsigned kSeed = 77;

std::vector<float> normal_values(size_t count) {
  std::mt19937 random(kSeed);
  std::normal_distribution<float> normal(0.0f, 0.02f);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<float> decoded(const nvfp4::QuantizedMatrix& matrix) {
  std::vector<float> values;
  for (size_t i = 0; i < matrix.codes.size() * 2; ++i) {
    const uint8_t code = i % 2 == 0 ? matrix.codes[i / 2] & 15u : matrix.codes[i / 2] >> 4;
    values.push_back(e2m1_to_f32(code) * (e4m3_to_f32(matrix.scales[i / 16]) * matrix.global));
  }
  return values;
}

double squared_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::pow(double{a[i]} - double{b[i]}, 2);
  return sum;
}

// What the definition alone gives: each group's scale is amax / 6, rounded to e4m3.
std::vector<float> quantised_plainly(const std::vector<float>& values) {
  float amax = 0;
  for (const float value : values) amax = std::max(amax, std::fabs(value));
  const float global = amax / (6.0f * 448.0f);
  std::vector<float> result;
  for (size_t start = 0; start < values.size(); start += 16) {
    float largest = 0;
    for (size_t i = 0; i < 16; ++i) largest = std::max(largest, std::fabs(values[start + i]));
    const float scale = e4m3_to_f32(f32_to_e4m3(largest / 6.0f / global)) * global;
    for (size_t i = 0; i < 16; ++i) {
      result.push_back(scale == 0 ? 0.0f : e2m1_to_f32(f32_to_e2m1(values[start + i] / scale)) * scale);
    }
  }
  return result;
}

TEST(Nvfp4Quantize, GivesBackValuesThatTheFormatCanHold) {
  // The first group has amax 6 * 448, so the global is 1; the second uses the scale 2.
  std::vector<float> values;
  for (int code = 0; code < 16; ++code) values.push_back(kE2m1Values[static_cast<size_t>(code)] * 448.0f);
  for (int code = 0; code < 16; ++code) values.push_back(kE2m1Values[static_cast<size_t>(15 - code)] * 2.0f);
  ThreadPool pool(1);
  const auto matrix = nvfp4::quantize(values, 1, 32, pool);
  EXPECT_EQ(matrix.global, 1.0f);
  EXPECT_EQ(matrix.scales, (std::vector<uint8_t>{0x7e, 0x40}));
  EXPECT_EQ(decoded(matrix), values);
}

TEST(Nvfp4Quantize, PutsTheEvenColumnIntoTheLowNibble) {
  std::vector<float> values(16, 0.0f);
  values[0] = 6.0f;
  values[1] = -3.0f;
  ThreadPool pool(1);
  EXPECT_EQ(nvfp4::quantize(values, 1, 16, pool).codes[0], 0xd7);
}

TEST(Nvfp4Quantize, TakesTheGlobalFromTheLargestMagnitude) {
  std::vector<float> values = normal_values(160);
  values[40] = -0.75f;
  ThreadPool pool(1);
  EXPECT_EQ(nvfp4::quantize(values, 10, 16, pool).global, 0.75f / (6.0f * 448.0f));
}

TEST(Nvfp4Quantize, TurnsZerosIntoZerosWithAGlobalThatCanBeInverted) {
  ThreadPool pool(1);
  for (const float tiny : {0.0f, 1e-44f}) {
    const auto matrix = nvfp4::quantize(std::vector<float>(32, tiny), 2, 16, pool);
    EXPECT_EQ(matrix.global, 1.0f);
    EXPECT_EQ(matrix.codes, std::vector<uint8_t>(16, 0));
    EXPECT_EQ(matrix.scales, std::vector<uint8_t>(2, 0));
  }
  // A group of zeros beside one that is not.
  std::vector<float> values(32, 0.0f);
  values[3] = 1.0f;
  const auto matrix = nvfp4::quantize(values, 1, 32, pool);
  EXPECT_EQ(matrix.scales[1], 0);
  EXPECT_EQ(decoded(matrix), values);
}

TEST(Nvfp4Quantize, HasLessErrorThanScalesByTheLargestValueAlone) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  const std::vector<float> values = normal_values(64 * 256);
  ThreadPool pool(2);
  const double searched = squared_distance(values, decoded(nvfp4::quantize(values, 64, 256, pool)));
  const double plain = squared_distance(values, quantised_plainly(values));
  EXPECT_LT(searched, 0.85 * plain);
  EXPECT_LT(std::sqrt(searched / squared_distance(values, std::vector<float>(values.size()))), 0.09);
}

TEST(Nvfp4Quantize, DoesNotDependOnTheNumberOfThreads) {
  const std::vector<float> values = normal_values(128 * 256);
  ThreadPool one(1), four(4);
  const auto a = nvfp4::quantize(values, 128, 256, one), b = nvfp4::quantize(values, 128, 256, four);
  EXPECT_EQ(a.codes, b.codes);
  EXPECT_EQ(a.scales, b.scales);
}

}  // namespace
}  // namespace sluice
