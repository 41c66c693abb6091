// Dot products: against double precision, and independent of their neighbours to the last bit.
#include "kernels/products.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/cpu.h"
#include "kernels/bf16_rows.h"
#include "kernels/matrix_data.h"

namespace sluice {
namespace {

struct Rows {
  std::vector<const float*> in;
  std::vector<std::vector<float>> values;
  std::vector<float*> out;

  Rows(const std::vector<float>& x, int64_t rows, int64_t k, int64_t count) {
    values.assign(static_cast<size_t>(rows), std::vector<float>(static_cast<size_t>(count), NAN));
    for (int64_t r = 0; r < rows; ++r) {
      in.push_back(x.data() + r * k);
      out.push_back(values[static_cast<size_t>(r)].data());
    }
  }
};

// (compute, format, rows, n, k)
class ProductsOf
    : public testing::TestWithParam<std::tuple<Compute, WeightFormat, int64_t, int64_t, int64_t>> {
 protected:
  void SetUp() override {
    std::tie(compute_, format_, rows_, n_, k_) = GetParam();
    const int64_t multiple = column_multiple(format_);
    k_ = (k_ + multiple - 1) / multiple * multiple;
  }
  MatrixData matrix(RandomValues& random) const {
    MatrixData w(random, format_, n_, k_);
    w.view.compute = compute_;
    const bool wide = format_ == WeightFormat::kF32 || format_ == WeightFormat::kF16;
    if (compute_ == Compute::kBf16 && wide) {  // what a product reads
      for (float& value : w.values) value = bf16_to_f32(f32_to_bf16(value));
    }
    return w;
  }
  std::vector<float> activations(RandomValues& random) const {
    std::vector<float> x = random.reals(rows_ * k_);
    if (compute_ == Compute::kBf16) round_to_bf16(x.data(), rows_ * k_, x.data());
    return x;
  }
  Compute compute_{};
  WeightFormat format_{};
  int64_t rows_ = 0, n_ = 0, k_ = 0;
};

double exact(const float* x, const std::vector<float>& w, int64_t row, int64_t k, double& magnitude) {
  double sum = 0;
  magnitude = 0;
  for (int64_t i = 0; i < k; ++i) {
    const double term = static_cast<double>(x[i]) * static_cast<double>(w[static_cast<size_t>(row * k + i)]);
    sum += term;
    magnitude += std::abs(term);
  }
  return sum;
}

TEST_P(ProductsOf, AgreeWithDoublePrecision) {
  RandomValues random(11);
  SCOPED_TRACE(random.trace());
  const MatrixData w = matrix(random);
  const std::vector<float> x = activations(random);
  for (const Products multiply : {products_ref, products()}) {
    Rows rows(x, rows_, k_, n_);
    multiply(rows.in.data(), rows_, w.view, 0, n_, rows.out.data());
    for (int64_t r = 0; r < rows_; ++r) {
      for (int64_t j = 0; j < n_; ++j) {
        double magnitude = 0;
        const double want = exact(x.data() + r * k_, w.values, j, k_, magnitude);
        // f32 sums over 8 lanes: the error stays within a few rounding steps of the terms' magnitude.
        EXPECT_NEAR(rows.values[static_cast<size_t>(r)][static_cast<size_t>(j)], want,
                    1e-6 * magnitude + 1e-12);
      }
    }
  }
}

TEST_P(ProductsOf, DependOnNeitherTheOtherRowsNorTheBlock) {
  RandomValues random(12);
  SCOPED_TRACE(random.trace());
  const MatrixData w = matrix(random);
  const std::vector<float> x = activations(random);
  Rows together(x, rows_, k_, n_);
  products()(together.in.data(), rows_, w.view, 0, n_, together.out.data());
  for (int64_t r = 0; r < rows_; ++r) {
    for (int64_t j = 0; j < n_; ++j) {
      float alone = NAN;
      float* out = &alone;
      products()(&together.in[static_cast<size_t>(r)], 1, w.view, j, 1, &out);
      EXPECT_EQ(alone, together.values[static_cast<size_t>(r)][static_cast<size_t>(j)])
          << "row " << r << ", output " << j;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(FormatsAndShapes, ProductsOf,
                         testing::Combine(testing::Values(Compute::kF32, Compute::kBf16),
                                          testing::Values(WeightFormat::kF32, WeightFormat::kF16,
                                                          WeightFormat::kBf16, WeightFormat::kFp8Block,
                                                          WeightFormat::kFp8Row, WeightFormat::kNvfp4,
                                                          WeightFormat::kMxfp4),
                                          testing::Values(1, 2, 3, 4, 9), testing::Values(1, 8, 35, 130),
                                          testing::Values(7, 16, 100, 256, 272)),
                         [](const auto& test) {
                           return std::string(name_of(std::get<1>(test.param))) + "_in_" +
                                  std::string(name_of(std::get<0>(test.param))) + "_" +
                                  std::to_string(std::get<2>(test.param)) + "x" +
                                  std::to_string(std::get<3>(test.param)) + "x" +
                                  std::to_string(std::get<4>(test.param));
                         });

/// products() of x with the matrix, its scales taken out and then as they are.
std::pair<float, float> without_and_with_scales(const std::vector<float>& x, Matrix w) {
  std::pair<float, float> result;
  const float* in = x.data();
  const std::vector<float> ones(16, 1.0f);
  Matrix plain = w;
  plain.global = 1;
  if (w.format != WeightFormat::kNvfp4) plain.scale = ones.data();
  float* out = &result.first;
  products()(&in, 1, plain, 0, 1, &out);
  out = &result.second;
  products()(&in, 1, w, 0, 1, &out);
  return result;
}

TEST(Products, InBf16ScalesThatBf16CannotHoldMultiplyFinishedSums) {
  RandomValues random(13);
  SCOPED_TRACE(random.trace());
  for (const WeightFormat format : {WeightFormat::kNvfp4, WeightFormat::kFp8Row}) {
    MatrixData w(random, format, 1, 128);
    w.view.compute = Compute::kBf16;
    std::vector<float> x = random.reals(128);
    round_to_bf16(x.data(), 128, x.data());
    const auto [plain, scaled] = without_and_with_scales(x, w.view);
    EXPECT_EQ(scaled, plain * bf16_factor(w.view, 0, 0)) << name_of(format);
    w.view.compute = Compute::kF32;  // there the numbers are scaled, and round apart
    const auto [plain_f32, scaled_f32] = without_and_with_scales(x, w.view);
    EXPECT_NE(scaled_f32, plain_f32 * bf16_factor(w.view, 0, 0)) << name_of(format);
  }
}

TEST(Bf16Rows, RoundToNearestTiesToEvenAndKeepWhatIsNoNumber) {
  const std::vector<float> x = {1.0f,         1.00390625f, 1.01171875f, 1.0039065f,
                                -1.00390625f, INFINITY,    NAN,         3.4e38f};
  std::vector<float> y(x.size());
  round_to_bf16(x.data(), static_cast<int64_t>(x.size()), y.data());
  const std::vector<float> want = {1.0f, 1.0f, 1.015625f, 1.0078125f, -1.0f, INFINITY};
  EXPECT_TRUE(std::equal(want.begin(), want.end(), y.begin()));
  EXPECT_TRUE(std::isnan(y[6]));
  EXPECT_EQ(y[7], INFINITY);
}

TEST(Products, DecodesEveryNvfp4CodeInOrder) {
  // 16 codes in one group, low nibble first, scale 2 (0x40), global 0.5: the e2m1 values themselves.
  std::vector<uint8_t> codes = {0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe};
  const uint8_t scale = 0x40;
  const Matrix w{{WeightFormat::kNvfp4, 1, 16, codes.data(), &scale, 0.5f}};
  std::vector<float> values(16), unit(16);
  decode_row(w, 0, values.data());
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(values[i], kE2m1Values[i]);
    std::fill(unit.begin(), unit.end(), 0.0f);
    unit[i] = 1;
    const float* in = unit.data();
    float y = NAN;
    float* out = &y;
    products()(&in, 1, w, 0, 1, &out);
    EXPECT_EQ(y, kE2m1Values[i]) << "column " << i;
  }
}

/// What products() makes of each single column of a row: 0 to k - 1.
std::vector<float> columns_by_product(const Matrix& w) {
  std::vector<float> values;
  for (int64_t i = 0; i < w.k; ++i) {
    std::vector<float> unit(static_cast<size_t>(w.k));
    unit[static_cast<size_t>(i)] = 1;
    const float* in = unit.data();
    float y = NAN;
    float* out = &y;
    products()(&in, 1, w, 0, 1, &out);
    values.push_back(y);
  }
  return values;
}

TEST(Products, DecodesEveryFp8CodeAsItsDefinitionSays) {
  // All codes but the two of NaN, times a scale that is no power of two.
  for (const WeightFormat format : {WeightFormat::kFp8Row, WeightFormat::kFp8Block}) {
    std::vector<uint8_t> codes(256);
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>((i & 0x7f) == 0x7f ? 0 : i);
    const std::vector<float> scales = {0.37f, 1.3f};  // of the row; of its two blocks
    const Matrix w{{format, 1, 256, codes.data(), scales.data(), 1.0f}};
    std::vector<float> values(256);
    decode_row(w, 0, values.data());
    const std::vector<float> multiplied = columns_by_product(w);
    for (size_t i = 0; i < codes.size(); ++i) {
      const float scale = format == WeightFormat::kFp8Block && i >= 128 ? 1.3f : 0.37f;
      EXPECT_EQ(values[i], e4m3_to_f32(codes[i]) * scale) << i;
      EXPECT_EQ(multiplied[i], values[i]) << i;
    }
  }
}

TEST(Products, KeepFp8NotANumber) {
  std::vector<uint8_t> codes(16, 0x38);
  codes[5] = 0xff;
  const float scale = 1;
  const Matrix w{{WeightFormat::kFp8Row, 1, 16, codes.data(), &scale, 1.0f}};
  const std::vector<float> ones(16, 1.0f);
  const float* in = ones.data();
  for (const Products multiply : {products_ref, products()}) {
    float y = 0;
    float* out = &y;
    multiply(&in, 1, w, 0, 1, &out);
    EXPECT_TRUE(std::isnan(y));
  }
}

TEST(Products, DecodesMxfp4WithItsPowersOfTwo) {
  // Two groups of 32 columns, scaled by 2^-127 and 2^3.
  std::vector<uint8_t> codes(32);
  for (size_t i = 0; i < 32; ++i) codes[i] = static_cast<uint8_t>(i % 8 * 0x22 + 0x10);
  const std::vector<uint8_t> scales = {0, 130};
  const Matrix w{{WeightFormat::kMxfp4, 1, 64, codes.data(), scales.data(), 1.0f}};
  std::vector<float> values(64);
  decode_row(w, 0, values.data());
  EXPECT_EQ(columns_by_product(w), values);
  for (size_t i = 0; i < 64; ++i) {
    const auto code = static_cast<uint8_t>(i % 2 == 0 ? codes[i / 2] & 15 : codes[i / 2] >> 4);
    EXPECT_EQ(values[i], std::ldexp(kE2m1Values[code], i < 32 ? -127 : 3)) << i;
  }
}

}  // namespace
}  // namespace sluice
