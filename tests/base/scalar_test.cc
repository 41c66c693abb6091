// Every code of every scalar format against a computation from the format's definition, and rounding against
// a search through all values of the format.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/scalar.h"

namespace sluice {
namespace {

// A binary floating-point format: sign, exponent and mantissa fields, bias, subnormals.
struct Format {
  int exponent_bits, mantissa_bits, bias;
  int codes() const { return 1 << (1 + exponent_bits + mantissa_bits); }
  int sign_bit() const { return codes() / 2; }
};
constexpr Format kBf16{8, 7, 127}, kF16{5, 10, 15}, kE4m3{4, 3, 7}, kE2m1{2, 1, 1};

// The value of a finite code, by the definition of such formats.
double value_of(const Format& format, int code) {
  const int mantissa = code & ((1 << format.mantissa_bits) - 1);
  const int exponent = (code >> format.mantissa_bits) & ((1 << format.exponent_bits) - 1);
  const double fraction = std::ldexp(mantissa, -format.mantissa_bits);
  const double magnitude = exponent == 0 ? std::ldexp(fraction, 1 - format.bias)
                                         : std::ldexp(1.0 + fraction, exponent - format.bias);
  return (code & format.sign_bit()) != 0 ? -magnitude : magnitude;
}

// The values of codes 0 to `count` - 1, which are in ascending order.
std::vector<double> values_up_to(const Format& format, int count) {
  std::vector<double> values;
  for (int code = 0; code < count; ++code) values.push_back(value_of(format, code));
  return values;
}

// The code of the value nearest to `magnitude`; of two equally near ones the even code. `values` is
// ascending.
int nearest_even(const std::vector<double>& values, double magnitude) {
  const auto above = std::lower_bound(values.begin(), values.end(), magnitude);
  if (above == values.end()) return static_cast<int>(values.size()) - 1;
  const int high = static_cast<int>(above - values.begin());
  if (high == 0) return 0;
  const double up = values[static_cast<size_t>(high)] - magnitude;
  const double down = magnitude - values[static_cast<size_t>(high) - 1];
  if (up == down) return high % 2 == 0 ? high : high - 1;
  return up < down ? high : high - 1;
}

constexpr unsigned kSeed = 20240611;

// All values, all midpoints, the floats beside them, and random floats over the whole range.
std::vector<float> inputs_for(const std::vector<double>& values) {
  std::vector<float> inputs;
  const auto add = [&](double value) {
    const auto center = static_cast<float>(value);
    inputs.insert(inputs.end(), {center, std::nextafterf(center, 0.0f), std::nextafterf(center, HUGE_VALF)});
  };
  for (size_t i = 0; i < values.size(); ++i) {
    add(values[i]);
    if (i > 0) add((values[i] + values[i - 1]) / 2);
  }
  std::mt19937 random(kSeed);
  std::uniform_real_distribution<double> exponent(std::log2(values[1]) - 3, std::log2(values.back()));
  for (int i = 0; i < 20'000; ++i) inputs.push_back(static_cast<float>(std::exp2(exponent(random))));
  return inputs;
}

// `encode` must give the nearest code for both signs of every input not above `limit`.
template <class Encode>
void expect_nearest(const Format& format, const std::vector<double>& values, double limit, Encode encode) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  for (const float input : inputs_for(values)) {
    if (!(input <= limit)) continue;
    const int expected = nearest_even(values, input);
    ASSERT_EQ(encode(input), expected) << std::hexfloat << input;
    if (input > 0) {
      ASSERT_EQ(encode(-input), expected | format.sign_bit()) << std::hexfloat << -input;
    }
  }
}

template <class Decode>
void expect_decodes(const Format& format, int code, Decode decode) {
  const double expected = value_of(format, code);
  const float actual = decode(code);
  ASSERT_EQ(actual, expected) << code;
  ASSERT_EQ(std::signbit(actual), (code & format.sign_bit()) != 0) << code;
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Bf16, DecodesEveryCode) {
  for (int code = 0; code < kBf16.codes(); ++code) {
    const float value = bf16_to_f32(static_cast<uint16_t>(code));
    if ((code & 0x7f80) != 0x7f80) {
      expect_decodes(kBf16, code, [](int c) { return bf16_to_f32(static_cast<uint16_t>(c)); });
    } else if ((code & 0x7f) == 0) {
      EXPECT_EQ(value, code == 0x7f80 ? kInfinity : -kInfinity);
    } else {
      EXPECT_TRUE(std::isnan(value)) << code;
    }
  }
}

TEST(Bf16, RoundsToNearestEven) {
  const auto values = values_up_to(kBf16, 0x7f80);
  expect_nearest(kBf16, values, values.back(), [](float value) { return int{f32_to_bf16(value)}; });
}

TEST(Bf16, KeepsInfinityAndNanAndOverflowsToInfinity) {
  EXPECT_EQ(f32_to_bf16(kInfinity), 0x7f80);
  EXPECT_EQ(f32_to_bf16(-kInfinity), 0xff80);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(kNan))));
  // A NaN whose payload lies in the dropped half must not become infinity.
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7f800001u)))));
}

TEST(F16, DecodesEveryCode) {
  for (int code = 0; code < kF16.codes(); ++code) {
    const float value = f16_to_f32(static_cast<uint16_t>(code));
    if ((code & 0x7c00) != 0x7c00) {
      expect_decodes(kF16, code, [](int c) { return f16_to_f32(static_cast<uint16_t>(c)); });
    } else if ((code & 0x3ff) == 0) {
      EXPECT_EQ(value, code == 0x7c00 ? kInfinity : -kInfinity);
    } else {
      EXPECT_TRUE(std::isnan(value)) << code;
    }
  }
}

TEST(F16, RoundsToNearestEven) {
  const auto values = values_up_to(kF16, 0x7c00);
  expect_nearest(kF16, values, values.back(), [](float value) { return int{f32_to_f16(value)}; });
}

TEST(F16, BecomesInfinityFromTheMidpointAboveItsLargestValue) {
  EXPECT_EQ(f32_to_f16(std::nextafterf(65520.0f, 0.0f)), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(-kInfinity), 0xfc00);
  EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(kNan))));
}

TEST(E4m3, DecodesEveryCode) {
  for (int code = 0; code < kE4m3.codes(); ++code) {
    if ((code & 0x7f) == 0x7f) {
      EXPECT_TRUE(std::isnan(e4m3_to_f32(static_cast<uint8_t>(code))));
      EXPECT_TRUE(std::isnan(kE4m3Values[static_cast<size_t>(code)]));
      continue;
    }
    expect_decodes(kE4m3, code, [](int c) { return e4m3_to_f32(static_cast<uint8_t>(c)); });
    expect_decodes(kE4m3, code, [](int c) { return kE4m3Values[static_cast<size_t>(c)]; });
  }
}

TEST(E4m3, RoundsToNearestEvenAndSaturates) {
  const auto values = values_up_to(kE4m3, 0x7f);
  ASSERT_EQ(values.back(), 448);
  expect_nearest(kE4m3, values, kInfinity, [](float value) { return int{f32_to_e4m3(value)}; });
  for (const float large : {449.0f, 463.9f, 464.0f, 480.0f, 1e30f, kInfinity}) {
    EXPECT_EQ(f32_to_e4m3(large), 0x7e) << large;
    EXPECT_EQ(f32_to_e4m3(-large), 0xfe) << large;
  }
  EXPECT_TRUE(std::isnan(e4m3_to_f32(f32_to_e4m3(kNan))));
}

TEST(E8m0, DecodesEveryCode) {
  for (int code = 0; code < 255; ++code) {
    EXPECT_EQ(e8m0_to_f32(static_cast<uint8_t>(code)), std::ldexp(1.0, code - 127)) << code;
  }
  EXPECT_TRUE(std::isnan(e8m0_to_f32(255)));
}

TEST(E2m1, DecodesEveryCode) {
  for (int code = 0; code < kE2m1.codes(); ++code) {
    expect_decodes(kE2m1, code, [](int c) { return e2m1_to_f32(static_cast<uint8_t>(c)); });
  }
}

TEST(E2m1, RoundsToNearestEvenAndSaturates) {
  const auto values = values_up_to(kE2m1, 8);
  ASSERT_EQ(values.back(), 6);
  expect_nearest(kE2m1, values, kInfinity, [](float value) { return int{f32_to_e2m1(value)}; });
  EXPECT_EQ(f32_to_e2m1(kInfinity), 7);
  EXPECT_EQ(f32_to_e2m1(-1e30f), 15);
  EXPECT_EQ(f32_to_e2m1(kNan), 0);
}

}  // namespace
}  // namespace sluice
