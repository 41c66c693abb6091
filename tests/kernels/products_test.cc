// Dot products: against double precision, and independent of their neighbours to the last bit.
#include "kernels/products.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <tuple>

#include "base/cpu.h"
#include "kernels/bf16_rows.h"
#include "kernels/matrix_data.h"

namespace sluice {
namespace {

/// Rows of x as one instruction set reads them, and room for its results.
struct Rows {
  const ProductKernels& kernels;
  const Matrix& w;
  std::vector<std::vector<float>> prepared, values;
  std::vector<const float*> in;
  std::vector<float*> out;

  Rows(const ProductKernels& set, const Matrix& matrix, const std::vector<float>& x, int64_t rows)
      : kernels(set), w(matrix) {
    for (int64_t r = 0; r < rows; ++r) {
      auto& row = prepared.emplace_back(static_cast<size_t>(w.k));
      kernels.prepare(x.data() + r * w.k, w.format, w.compute, w.k, row.data());
      values.emplace_back(static_cast<size_t>(w.n), NAN);
    }
    for (auto& row : prepared) in.push_back(row.data());
    for (auto& row : values) out.push_back(row.data());
  }
  void multiply() { kernels.multiply(in.data(), std::ssize(in), w, 0, w.n, out.data()); }
  float alone(size_t row, int64_t column) const {
    float y = NAN;
    float* to = &y;
    kernels.multiply(&in[row], 1, w, column, 1, &to);
    return y;
  }
};

float product(const ProductKernels& kernels, const Matrix& w, const std::vector<float>& x) {
  return Rows(kernels, w, x, 1).alone(0, 0);
}

TEST(Products, RunForEveryLevelOfThisProcessor) {
  std::string levels;
  for (const ProductKernels* kernels : all_products()) levels += std::string(name_of(kernels->level)) + " ";
  std::cout << "tested: " << levels << "\n";
  EXPECT_EQ(all_products().front(), &kProductsRef);
  EXPECT_EQ(all_products().back()->level, best_simd_level());
}

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
  for (const ProductKernels* kernels : all_products()) {
    SCOPED_TRACE(name_of(kernels->level));
    Rows rows(*kernels, w.view, x, rows_);
    rows.multiply();
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
  for (const ProductKernels* kernels : all_products()) {
    SCOPED_TRACE(name_of(kernels->level));
    Rows together(*kernels, w.view, x, rows_);
    together.multiply();
    for (size_t r = 0; r < static_cast<size_t>(rows_); ++r) {
      for (int64_t j = 0; j < n_; ++j) {
        EXPECT_EQ(together.alone(r, j), together.values[r][static_cast<size_t>(j)])
            << "row " << r << ", output " << j;
      }
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
                                          testing::Values(7, 16, 100, 256, 272, 640)),
                         [](const auto& test) {
                           return std::string(name_of(std::get<1>(test.param))) + "_in_" +
                                  std::string(name_of(std::get<0>(test.param))) + "_" +
                                  std::to_string(std::get<2>(test.param)) + "x" +
                                  std::to_string(std::get<3>(test.param)) + "x" +
                                  std::to_string(std::get<4>(test.param));
                         });

/// The product of x with the matrix, its scales taken out and then as they are.
std::pair<float, float> without_and_with_scales(const ProductKernels& kernels, const std::vector<float>& x,
                                                const Matrix& w) {
  const std::vector<float> ones(16, 1.0f);
  Matrix plain = w;
  plain.global = 1;
  if (w.format != WeightFormat::kNvfp4) plain.scale = ones.data();
  return {product(kernels, plain, x), product(kernels, w, x)};
}

TEST(Products, InBf16ScalesThatBf16CannotHoldMultiplyFinishedSums) {
  RandomValues random(13);
  SCOPED_TRACE(random.trace());
  for (const ProductKernels* kernels : all_products()) {
    for (const WeightFormat format : {WeightFormat::kNvfp4, WeightFormat::kFp8Row}) {
      SCOPED_TRACE(std::string(name_of(kernels->level)) + " " + std::string(name_of(format)));
      MatrixData w(random, format, 1, 128);
      w.view.compute = Compute::kBf16;
      const std::vector<float> x = random.reals(128);
      const auto [plain, scaled] = without_and_with_scales(*kernels, x, w.view);
      if (kernels != &kProductsRef) {  // which rounds once, at the end
        EXPECT_EQ(scaled, plain * bf16_factor(w.view, 0, 0));
      }
      EXPECT_FLOAT_EQ(scaled, plain * bf16_factor(w.view, 0, 0));
    }
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

/// What products make of each single column of a row: 0 to k - 1.
std::vector<float> columns_by_product(const ProductKernels& kernels, const Matrix& w) {
  std::vector<float> values;
  for (int64_t i = 0; i < w.k; ++i) {
    std::vector<float> unit(static_cast<size_t>(w.k));
    unit[static_cast<size_t>(i)] = 1;
    values.push_back(product(kernels, w, unit));
  }
  return values;
}

TEST(Products, DecodesEveryNvfp4CodeInOrder) {
  // 16 codes in one group, low nibble first, scale 2 (0x40), global 0.5: the e2m1 values themselves.
  std::vector<uint8_t> codes = {0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe};
  const uint8_t scale = 0x40;
  const Matrix w{{WeightFormat::kNvfp4, 1, 16, codes.data(), &scale, 0.5f}};
  std::vector<float> values(16);
  decode_row(w, 0, values.data());
  EXPECT_TRUE(std::equal(values.begin(), values.end(), kE2m1Values.begin()));
  for (const ProductKernels* kernels : all_products()) {
    EXPECT_EQ(columns_by_product(*kernels, w), values) << name_of(kernels->level);
  }
}

// As above, in rows that are long enough for the loaders of whole chunks.
TEST(Products, DecodesEveryNvfp4CodeInEveryColumnOfAChunk) {
  for (const Compute compute : {Compute::kF32, Compute::kBf16}) {
    for (int shift = 0; shift < 16; ++shift) {
      std::vector<uint8_t> codes(64), scales(8);
      for (size_t i = 0; i < 128; ++i) {
        const auto code = static_cast<uint8_t>((i * 5 + static_cast<size_t>(shift)) % 16);
        codes[i / 2] = static_cast<uint8_t>(codes[i / 2] | (i % 2 == 0 ? code : code << 4));
      }
      for (size_t i = 0; i < 8; ++i) scales[i] = static_cast<uint8_t>(0x30 + 3 * i);
      const Matrix w{{WeightFormat::kNvfp4, 1, 128, codes.data(), scales.data(), 0.5f}, compute};
      std::vector<float> values(128);
      decode_row(w, 0, values.data());
      for (const ProductKernels* kernels : all_products()) {
        EXPECT_EQ(columns_by_product(*kernels, w), values) << name_of(kernels->level);
      }
    }
  }
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
    for (size_t i = 0; i < codes.size(); ++i) {
      const float scale = format == WeightFormat::kFp8Block && i >= 128 ? 1.3f : 0.37f;
      EXPECT_EQ(values[i], e4m3_to_f32(codes[i]) * scale) << i;
    }
    for (const ProductKernels* kernels : all_products()) {
      for (const Compute compute : {Compute::kF32, Compute::kBf16}) {
        const Matrix as_read{w, compute};
        EXPECT_EQ(columns_by_product(*kernels, as_read), values) << name_of(kernels->level);
      }
    }
  }
}

TEST(Products, KeepFp8NotANumber) {
  std::vector<uint8_t> codes(32, 0x38);
  codes[21] = 0xff;
  const float scale = 1;
  const Matrix w{{WeightFormat::kFp8Row, 1, 32, codes.data(), &scale, 1.0f}};
  const std::vector<float> ones(32, 1.0f);
  for (const ProductKernels* kernels : all_products()) {
    EXPECT_TRUE(std::isnan(product(*kernels, w, ones))) << name_of(kernels->level);
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
  for (const ProductKernels* kernels : all_products()) EXPECT_EQ(columns_by_product(*kernels, w), values);
  for (size_t i = 0; i < 64; ++i) {
    const auto code = static_cast<uint8_t>(i % 2 == 0 ? codes[i / 2] & 15 : codes[i / 2] >> 4);
    EXPECT_EQ(values[i], std::ldexp(kE2m1Values[code], i < 32 ? -127 : 3)) << i;
  }
}

}  // namespace
}  // namespace sluice
