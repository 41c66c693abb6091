// Dot products: against double precision, and independent of their neighbours to the last bit.
#include "kernels/products.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "base/cpu.h"
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

// (format, rows, n, k)
class ProductsOf : public testing::TestWithParam<std::tuple<WeightFormat, int64_t, int64_t, int64_t>> {
 protected:
  void SetUp() override {
    std::tie(format_, rows_, n_, k_) = GetParam();
    if (format_ == WeightFormat::kNvfp4 && k_ % 16 != 0) k_ += 16 - k_ % 16;
  }
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
  const MatrixData w(random, format_, n_, k_);
  const std::vector<float> x = random.reals(rows_ * k_);
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
  const MatrixData w(random, format_, n_, k_);
  const std::vector<float> x = random.reals(rows_ * k_);
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
                         testing::Combine(testing::Values(WeightFormat::kF32, WeightFormat::kF16,
                                                          WeightFormat::kBf16, WeightFormat::kNvfp4),
                                          testing::Values(1, 2, 3, 4, 9), testing::Values(1, 8, 35),
                                          testing::Values(7, 16, 100, 256)),
                         [](const auto& test) {
                           return std::string(name_of(std::get<0>(test.param))) + "_" +
                                  std::to_string(std::get<1>(test.param)) + "x" +
                                  std::to_string(std::get<2>(test.param)) + "x" +
                                  std::to_string(std::get<3>(test.param));
                         });

TEST(Products, DecodesEveryNvfp4CodeInOrder) {
  // 16 codes in one group, low nibble first, scale 2 (0x40), global 0.5: the e2m1 values themselves.
  std::vector<uint8_t> codes = {0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe};
  const uint8_t scale = 0x40;
  const Matrix w{WeightFormat::kNvfp4, 1, 16, codes.data(), &scale, 0.5f};
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

}  // namespace
}  // namespace sluice
