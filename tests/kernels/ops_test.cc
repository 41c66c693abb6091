// The other host kernels against plain double-precision loops.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "device/device.h"
#include "kernels/attention.h"
#include "kernels/bf16_rows.h"
#include "kernels/experts.h"
#include "kernels/linear.h"
#include "kernels/matrix_data.h"
#include "kernels/norm.h"
#include "kernels/rope.h"
#include "kernels/router.h"

namespace sluice {
namespace {

class Ops : public testing::Test {
 protected:
  std::unique_ptr<Device> device_ = make_host_device(3);
  std::unique_ptr<Stream> stream_ = device_->make_stream();
  RandomValues random_{21};
  testing::ScopedTrace trace_{__FILE__, __LINE__, random_.trace()};
};

TEST_F(Ops, LinearAddsItsBias) {
  const MatrixData w(random_, WeightFormat::kF32, 70, 24);
  const std::vector<float> x = random_.reals(3 * 24), bias = random_.reals(70);
  std::vector<float> plain(3 * 70), with_bias(3 * 70);
  linear(*stream_, x.data(), 3, w.view, nullptr, plain.data());
  linear(*stream_, x.data(), 3, w.view, bias.data(), with_bias.data());
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(with_bias[i], plain[i] + bias[i % 70]);
}

// Each part to the bit as the operations that it stands for.
TEST_F(Ops, PartsOfAProductEqualTheirOperations) {
  for (const int64_t rows : {1, 5}) {
    const int64_t k = 48;
    const MatrixData a(random_, WeightFormat::kBf16, 70, k), b(random_, WeightFormat::kF32, 9, k);
    const MatrixData gate(random_, WeightFormat::kNvfp4, 33, k), up(random_, WeightFormat::kNvfp4, 33, k);
    const std::vector<float> x = random_.reals(rows * k), bias = random_.reals(70),
                             old = random_.reals(rows * 70);
    const std::vector<float> weights = random_.reals(rows);
    const auto floats = [&](int64_t n) { return std::vector<float>(static_cast<size_t>(rows * n)); };
    std::vector<float> wa = floats(70), wb = floats(9), wg = floats(33), wu = floats(33), added = old,
                       gated = old;
    linear(*stream_, x.data(), rows, a.view, bias.data(), wa.data());
    linear(*stream_, x.data(), rows, b.view, nullptr, wb.data());
    linear(*stream_, x.data(), rows, gate.view, nullptr, wg.data());
    linear(*stream_, x.data(), rows, up.view, nullptr, wu.data());
    silu_and_multiply(*stream_, wg.data(), wu.data(), rows * 33, wg.data());
    add(*stream_, added.data(), wa.data(), rows * 70);
    add_gated(*stream_, gated.data(), wa.data(), weights.data(), rows, 70);

    std::vector<float> ga = floats(70), gb = floats(9), gg = floats(33), gadded = old, ggated = old;
    linear_parts(*stream_, x.data(), rows,
                 {{.w = a.view, .bias = bias.data(), .y = ga.data()},
                  {.w = b.view, .y = gb.data()},
                  {.w = gate.view, .y = gg.data(), .up = up.view}});
    linear_parts(
        *stream_, x.data(), rows,
        {{.w = a.view, .bias = bias.data(), .y = gadded.data(), .add = true},
         {.w = a.view, .bias = bias.data(), .y = ggated.data(), .add = true, .gate = weights.data()}});
    EXPECT_EQ(ga, wa);
    EXPECT_EQ(gb, wb);
    EXPECT_EQ(gg, wg);
    EXPECT_EQ(gadded, added);
    EXPECT_EQ(ggated, gated);
  }
}

TEST_F(Ops, EmbeddingPicksRows) {
  const MatrixData table(random_, WeightFormat::kBf16, 9, 5);
  const std::vector<int32_t> ids = {8, 0, 8};
  std::vector<float> y(15);
  embedding(*stream_, ids.data(), 3, table.view, y.data());
  for (size_t i = 0; i < 15; ++i) EXPECT_EQ(y[i], table.values[static_cast<size_t>(ids[i / 5]) * 5 + i % 5]);
}

TEST_F(Ops, RmsNormMatchesItsDefinitionInPlace) {
  const int64_t rows = 50, n = 33;
  const std::vector<float> x = random_.reals(rows * n), weight = random_.reals(n);
  std::vector<float> y = x;
  rms_norm(*stream_, y.data(), rows, n, weight.data(), 1e-5f, y.data());
  for (int64_t r = 0; r < rows; ++r) {
    double squares = 0;
    for (int64_t i = 0; i < n; ++i)
      squares += std::pow(static_cast<double>(x[static_cast<size_t>(r * n + i)]), 2);
    for (int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<size_t>(r * n + i);
      EXPECT_NEAR(y[at], x[at] / std::sqrt(squares / n + 1e-5) * weight[static_cast<size_t>(i)], 2e-6);
    }
  }
}

TEST_F(Ops, SiluAndMultiplyIsExactAtTheEdges) {
  const std::vector<float> gate = {0, 1, -1, 100, -100}, up = {5, 2, 2, 3, 3};
  std::vector<float> y(5);
  silu_and_multiply(*stream_, gate.data(), up.data(), 5, y.data());
  EXPECT_EQ(y[0], 0);
  EXPECT_NEAR(y[1], 2 / (1 + std::exp(-1.0)), 1e-6);
  EXPECT_NEAR(y[2], -2 / (1 + std::exp(1.0)), 1e-6);
  EXPECT_EQ(y[3], 300);
  EXPECT_NEAR(y[4], 0, 1e-30);
}

TEST_F(Ops, RopeRotatesPairsByPositionTimesFrequency) {
  const int64_t rows = 3, heads = 2, dim = 8, half = 3, first = 100;  // partial: the last two elements stay
  const std::vector<float> frequencies = {1.0f, 0.1f, 0.01f};
  const std::vector<float> x = random_.reals(rows * heads * dim);
  std::vector<float> y = x, cos(rows * half), sin(rows * half);
  rope_table(*stream_, first, rows, frequencies.data(), half, cos.data(), sin.data());
  rope(*stream_, y.data(), rows, heads, dim, cos.data(), sin.data(), half);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t h = 0; h < heads; ++h) {
      const size_t base = static_cast<size_t>((r * heads + h) * dim);
      for (size_t i = 0; i < 3; ++i) {
        const double angle = static_cast<double>(static_cast<float>(first + r) * frequencies[i]);
        EXPECT_NEAR(y[base + i], x[base + i] * std::cos(angle) - x[base + i + 3] * std::sin(angle), 1e-6);
        EXPECT_NEAR(y[base + i + 3], x[base + i + 3] * std::cos(angle) + x[base + i] * std::sin(angle), 1e-6);
      }
      EXPECT_EQ(y[base + 6], x[base + 6]);
      EXPECT_EQ(y[base + 7], x[base + 7]);
    }
  }
}

struct AttentionCase {
  int64_t heads = 6, kv_heads = 2, dim = 20, capacity = 40, positions = 37;
  KvFormat format;
  std::vector<float> q, k, v, keys, values;
  AttentionCase(RandomValues& random, KvFormat kv_format)
      : format(kv_format),
        q(random.reals(positions * heads * dim, -2, 2)),
        k(random.reals(positions * kv_heads * dim, -2, 2)),
        v(random.reals(positions * kv_heads * dim)),
        keys(static_cast<size_t>(kv_heads * capacity * dim), NAN),
        values(keys) {}
  /// In bf16 the vectors hold half as many numbers as they could.
  KvLayer cache() { return {keys.data(), values.data(), kv_heads, capacity, dim, format}; }

  std::vector<float> run(Stream& stream, const std::vector<int64_t>& cuts) {
    std::vector<float> y(q.size(), NAN);
    int64_t at = 0;
    for (const int64_t rows : cuts) {
      kv_store(stream, k.data() + at * kv_heads * dim, v.data() + at * kv_heads * dim, rows, at, cache());
      attention(stream, q.data() + at * heads * dim, rows, heads, at, 0.25f, cache(), nullptr,
                y.data() + at * heads * dim);
      at += rows;
    }
    return y;
  }
};

class AttentionOver : public Ops, public testing::WithParamInterface<KvFormat> {};

TEST_P(AttentionOver, IsCausalAndGrouped) {
  AttentionCase c(random_, GetParam());
  const std::vector<float> y = c.run(*stream_, {c.positions});
  if (GetParam() == KvFormat::kBf16) {  // what the cache holds
    round_to_bf16(c.k.data(), std::ssize(c.k), c.k.data());
    round_to_bf16(c.v.data(), std::ssize(c.v), c.v.data());
  }
  for (int64_t r = 0; r < c.positions; ++r) {
    for (int64_t h = 0; h < c.heads; ++h) {
      std::vector<double> out(static_cast<size_t>(c.dim));
      double total = 0;
      for (int64_t p = 0; p <= r; ++p) {
        const size_t kv = static_cast<size_t>((p * c.kv_heads + h / 3) * c.dim);
        double score = 0;
        for (size_t i = 0; i < out.size(); ++i) {
          score += static_cast<double>(c.q[static_cast<size_t>((r * c.heads + h) * c.dim) + i]) *
                   static_cast<double>(c.k[kv + i]);
        }
        const double weight = std::exp(score * 0.25);
        total += weight;
        for (size_t i = 0; i < out.size(); ++i) out[i] += weight * static_cast<double>(c.v[kv + i]);
      }
      for (size_t i = 0; i < out.size(); ++i) {
        EXPECT_NEAR(y[static_cast<size_t>((r * c.heads + h) * c.dim) + i], out[i] / total, 2e-6);
      }
    }
  }
}

TEST_P(AttentionOver, GivesTheSameBitsForEveryCut) {
  AttentionCase c(random_, GetParam());
  const std::vector<float> whole = c.run(*stream_, {37});
  EXPECT_EQ(c.run(*stream_, {1, 36}), whole);
  EXPECT_EQ(c.run(*stream_, {20, 10, 7}), whole);
  EXPECT_EQ(c.run(*stream_, std::vector<int64_t>(37, 1)), whole);
}

INSTANTIATE_TEST_SUITE_P(Formats, AttentionOver, testing::Values(KvFormat::kF32, KvFormat::kBf16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST_F(Ops, LinearRoundsItsInputInBf16) {
  MatrixData w(random_, WeightFormat::kBf16, 20, 48);
  std::vector<float> x = random_.reals(3 * 48);
  std::vector<float> rounded(x.size()), y(60), want(60);
  round_to_bf16(x.data(), std::ssize(x), rounded.data());
  linear(*stream_, rounded.data(), 3, w.view, nullptr, want.data());
  w.view.compute = Compute::kBf16;
  linear(*stream_, x.data(), 3, w.view, nullptr, y.data());
  EXPECT_EQ(y, want);
}

TEST_F(Ops, RouterGivesTiesToTheLowerIdAndKnowsMoreThan256Experts) {
  std::vector<float> logits(1024, 0.0f);
  logits[1000] = 2;
  logits[300] = 2;
  logits[7] = 1;
  std::vector<int32_t> ids(5);
  std::vector<float> weights(5);
  router_top_k(*stream_, logits.data(), 1, 1024, 5, true, ids.data(), weights.data());
  EXPECT_EQ(ids, (std::vector<int32_t>{300, 1000, 7, 0, 1}));
  EXPECT_NEAR(std::accumulate(weights.begin(), weights.end(), 0.0), 1.0, 1e-6);
  router_top_k(*stream_, logits.data(), 1, 1024, 5, false, ids.data(), weights.data());
  const double total = 1021 + std::exp(1.0) + 2 * std::exp(2.0);
  EXPECT_NEAR(weights[0], std::exp(2.0) / total, 1e-7);
  EXPECT_NEAR(weights[4], 1 / total, 1e-7);
}

TEST_F(Ops, AddGatedScalesEachRowByItsSigmoid) {
  std::vector<float> x = {1, 2, 3, 4, 5, 6};
  const std::vector<float> y = {10, 20, 30, 40, 50, 60}, gate = {0, 1000, -1000};
  add_gated(*stream_, x.data(), y.data(), gate.data(), 3, 2);
  EXPECT_EQ(x, (std::vector<float>{6, 12, 33, 44, 5, 6}));
}

/// A layer of packed experts with known matrices.
struct ExpertCase {
  int64_t experts = 5, hidden = 32, inner = 64, k = 3, rows = 7;
  RowLayout layout;
  Compute compute;
  std::vector<MatrixData> gate, up, down;
  std::vector<std::byte> bytes;
  std::vector<float> scalars, x, weights;
  std::vector<int32_t> row_of, ids;

  ExpertCase(RandomValues& random, WeightFormat format, Compute computed)
      : layout(row_layout(format, hidden, inner)), compute(computed) {
    bytes.resize(static_cast<size_t>(experts) * layout.row_bytes);
    for (int64_t e = 0; e < experts; ++e) {
      gate.emplace_back(random, format, inner, hidden);
      up.emplace_back(random, format, inner, hidden);
      down.emplace_back(random, format, hidden, inner);
      row_of.push_back(static_cast<int32_t>(experts - 1 - e));  // rows need not lie in order
      std::byte* row = bytes.data() + static_cast<size_t>(row_of.back()) * layout.row_bytes;
      put(row, layout.gate_up, 0, gate.back().data);
      put(row, layout.gate_up, layout.gate_up.bytes / 2, up.back().data);
      put(row, layout.gate_up_scale, 0, gate.back().scale);
      put(row, layout.gate_up_scale, layout.gate_up_scale.bytes / 2, up.back().scale);
      put(row, layout.down, 0, down.back().data);
      put(row, layout.down_scale, 0, down.back().scale);
      for (const auto* m : {&gate.back(), &up.back(), &down.back()}) scalars.push_back(m->view.global);
    }
    x = random.reals(rows * hidden);
    weights = random.reals(rows * k, 0, 1);
    for (int64_t i = 0; i < rows * k; ++i) ids.push_back(static_cast<int32_t>((i * 2 + i / k) % experts));
  }

  static void put(std::byte* row, const RowLayout::Part& part, size_t offset,
                  const std::vector<std::byte>& from) {
    std::copy(from.begin(), from.end(), row + part.offset + offset);
  }

  std::vector<float> run(Stream& stream, int64_t first, int64_t count) {
    std::vector<float> activations(static_cast<size_t>(count * k * inner), NAN);
    std::vector<float> outputs(static_cast<size_t>(count * k * hidden), NAN);
    std::vector<float> y(static_cast<size_t>(count * hidden), NAN);
    const ExpertRows view{layout, bytes.data(), row_of.data(), scalars.data(), experts, compute};
    const ExpertRoutes routes{ids.data() + first * k, weights.data() + first * k, count, k};
    // In two parts: which experts a call has must not show.
    expert_products(stream, x.data() + first * hidden, routes, view, 0, 2, activations.data(),
                    outputs.data());
    expert_products(stream, x.data() + first * hidden, routes, view, 2, static_cast<int32_t>(experts),
                    activations.data(), outputs.data());
    expert_sums(stream, outputs.data(), routes, hidden, y.data());
    return y;
  }

  /// As a product reads it.
  double read(double value) const {
    const auto f32 = static_cast<float>(value);
    return compute == Compute::kBf16 ? static_cast<double>(bf16_to_f32(f32_to_bf16(f32))) : value;
  }
  double weight(const MatrixData& w, int64_t index) const {
    const auto value = static_cast<double>(w.values[static_cast<size_t>(index)]);
    const bool wide = layout.format == WeightFormat::kF32 || layout.format == WeightFormat::kF16;
    return wide ? read(value) : value;
  }

  double wanted(int64_t r, int64_t j) const {
    double sum = 0;
    for (int64_t i = r * k; i < (r + 1) * k; ++i) {
      const int32_t id = ids[static_cast<size_t>(i)];
      if (id < 0) continue;
      const auto e = static_cast<size_t>(id);
      for (int64_t m = 0; m < inner; ++m) {
        double g = 0, u = 0;
        for (int64_t h = 0; h < hidden; ++h) {
          const double value = read(static_cast<double>(x[static_cast<size_t>(r * hidden + h)]));
          g += value * weight(gate[e], m * hidden + h);
          u += value * weight(up[e], m * hidden + h);
        }
        sum += static_cast<double>(weights[static_cast<size_t>(i)]) * read(g / (1 + std::exp(-g)) * u) *
               weight(down[e], j * inner + m);
      }
    }
    return sum;
  }
};

class ExpertsOf : public Ops, public testing::WithParamInterface<std::tuple<Compute, WeightFormat>> {
 protected:
  ExpertCase c_{random_, std::get<1>(GetParam()), std::get<0>(GetParam())};
};

TEST_P(ExpertsOf, MatchTheirDefinitionAndSkipPaddingRows) {
  ExpertCase& c = c_;
  for (int64_t i = 0; i < c.k; ++i)
    c.ids[static_cast<size_t>(2 * c.k + i)] = -1;  // a row that only pads a batch
  for (int64_t h = 0; h < c.hidden; ++h) c.x[static_cast<size_t>(2 * c.hidden + h)] = NAN;
  const std::vector<float> y = c.run(*stream_, 0, c.rows);
  for (int64_t r = 0; r < c.rows; ++r) {
    std::vector<double> want(static_cast<size_t>(c.hidden));
    double highest = 0;
    for (size_t j = 0; r != 2 && j < want.size(); ++j) {
      want[j] = c.wanted(r, static_cast<int64_t>(j));
      highest = std::max(highest, std::abs(want[j]));
    }
    for (size_t j = 0; j < want.size(); ++j) {
      // An activation that lies between two bf16 numbers may go to either.
      const double tolerance = c.compute == Compute::kBf16 ? 1e-3 : 1e-5;
      EXPECT_NEAR(y[static_cast<size_t>(r * c.hidden) + j], want[j], tolerance * highest) << r << ", " << j;
    }
  }
}

TEST_P(ExpertsOf, GiveTheSameBitsAloneAndTogether) {
  ExpertCase& c = c_;
  const std::vector<float> together = c.run(*stream_, 0, c.rows);
  for (int64_t r = 0; r < c.rows; ++r) {
    const std::vector<float> alone = c.run(*stream_, r, 1);
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + r * c.hidden)) << "row " << r;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, ExpertsOf,
                         testing::Combine(testing::Values(Compute::kF32, Compute::kBf16),
                                          testing::Values(WeightFormat::kF32, WeightFormat::kF16,
                                                          WeightFormat::kBf16, WeightFormat::kFp8Block,
                                                          WeightFormat::kFp8Row, WeightFormat::kNvfp4,
                                                          WeightFormat::kMxfp4)),
                         [](const auto& test) {
                           return std::string(name_of(std::get<1>(test.param))) + "_in_" +
                                  std::string(name_of(std::get<0>(test.param)));
                         });

}  // namespace
}  // namespace sluice
