// Each kernel against the host version, over formats and shapes.
#include <cmath>
#include <tuple>

#include "gpu/gpu.h"
#include "kernels/attention.h"
#include "kernels/experts.h"
#include "kernels/heads.h"
#include "kernels/linear.h"
#include "kernels/matrix_data.h"
#include "kernels/norm.h"
#include "kernels/rope.h"
#include "kernels/router.h"
#include "random_values.h"

namespace sluice::testing {
namespace {

class CudaKernel : public ::testing::Test {
 protected:
  CudaKernel()
      : host_device_(make_host_device(4)),
        host_(host_device_->make_stream()),
        cuda_(gpu().make_stream("test", Priority::kNormal)) {}

  std::vector<float> reals(int64_t n, float most = 1) {
    std::vector<float> values(static_cast<size_t>(n));
    for (float& value : values) value = random_.real(-most, most);
    return values;
  }
  void expect_near(const std::vector<float>& got, const std::vector<float>& want, double tolerance) {
    ASSERT_EQ(got.size(), want.size());
    double largest = 1e-30, worst = 0;
    for (const float value : want) largest = std::max(largest, std::abs(static_cast<double>(value)));
    for (size_t i = 0; i < got.size(); ++i) {
      const double error = std::abs(static_cast<double>(got[i]) - want[i]);
      worst = std::isnan(error) ? INFINITY : std::max(worst, error);
    }
    EXPECT_LE(worst / largest, tolerance);
  }

  RandomValues random_{20261130};
  std::unique_ptr<Device> host_device_;
  std::unique_ptr<Stream> host_, cuda_;
};

TEST_F(CudaKernel, NormsAddsAndActivates) {
  for (const auto& [rows, n] : {std::pair<int64_t, int64_t>{1, 16}, {5, 128}, {33, 2048}, {3, 100}}) {
    const std::vector<float> x = reals(rows * n, 3), weight = reals(n), up = reals(rows * n);
    std::vector<float> want(x.size());
    GpuArray<float> gx(*cuda_, x), gw(*cuda_, weight), gu(*cuda_, up), gy(*cuda_, want);
    rms_norm(*host_, x.data(), rows, n, weight.data(), 1e-6f, want.data());
    rms_norm(*cuda_, gx.data(), rows, n, gw.data(), 1e-6f, gy.data());
    expect_near(gy.read(), want, 1e-5);
    silu_and_multiply(*host_, x.data(), up.data(), rows * n, want.data());
    silu_and_multiply(*cuda_, gx.data(), gu.data(), rows * n, gy.data());
    expect_near(gy.read(), want, 1e-5);
    const std::vector<float> gate = reals(rows);
    GpuArray<float> gg(*cuda_, gate);
    add_gated(*host_, want.data(), x.data(), gate.data(), rows, n);
    add_gated(*cuda_, gy.data(), gx.data(), gg.data(), rows, n);
    expect_near(gy.read(), want, 1e-5);
    add(*host_, want.data(), x.data(), rows * n);
    add(*cuda_, gy.data(), gx.data(), rows * n);
    expect_near(gy.read(), want, 1e-5);
  }
}

TEST_F(CudaKernel, RotatesHeads) {
  const int64_t rows = 9, heads = 3, dim = 64, half = 24, first = 100000;
  std::vector<float> frequencies(static_cast<size_t>(half));
  for (size_t i = 0; i < frequencies.size(); ++i)
    frequencies[i] = std::pow(1e4f, -static_cast<float>(i) / 24.0f);
  std::vector<float> x = reals(rows * heads * dim), cos(static_cast<size_t>(rows * half)), sin = cos;
  GpuArray<float> gf(*cuda_, frequencies), gx(*cuda_, x), gc(*cuda_, cos), gs(*cuda_, sin);
  rope_table(*host_, first, rows, frequencies.data(), half, cos.data(), sin.data());
  rope_table(*cuda_, first, rows, gf.data(), half, gc.data(), gs.data());
  expect_near(gc.read(), cos, 1e-5);
  expect_near(gs.read(), sin, 1e-5);
  rope(*host_, x.data(), rows, heads, dim, cos.data(), sin.data(), half);
  rope(*cuda_, gx.data(), rows, heads, dim, gc.data(), gs.data(), half);
  expect_near(gx.read(), x, 1e-5);
}

TEST_F(CudaKernel, TakesHeadsToTheCache) {
  for (const auto& [dim, half] : {std::pair<int64_t, int64_t>{16, 8}, {80, 40}, {128, 32}, {256, 128}}) {
    for (const bool norms : {false, true}) {
      const int64_t rows = 5, heads = 6, kv_heads = 2, first = 7, capacity = 20;
      const std::vector<float> v = reals(rows * kv_heads * dim), q_norm = reals(dim), k_norm = reals(dim),
                               cos = reals(rows * half), sin = reals(rows * half);
      std::vector<float> q = reals(rows * heads * dim), k = reals(rows * kv_heads * dim),
                         keys = reals(kv_heads * capacity * dim), values = keys;
      GpuArray<float> gq(*cuda_, q), gk(*cuda_, k), gv(*cuda_, v), gqn(*cuda_, q_norm), gkn(*cuda_, k_norm),
          gc(*cuda_, cos), gs(*cuda_, sin), gkeys(*cuda_, keys), gvalues(*cuda_, values);
      Heads here{q.data(), k.data(), v.data(),   rows,       heads, nullptr,
                 nullptr,  1e-6f,    cos.data(), sin.data(), half};
      Heads there{gq.data(), gk.data(), gv.data(), rows,      heads, nullptr,
                  nullptr,   1e-6f,     gc.data(), gs.data(), half};
      if (norms) {
        here.q_norm = q_norm.data(), here.k_norm = k_norm.data();
        there.q_norm = gqn.data(), there.k_norm = gkn.data();
      }
      heads_to_cache(*host_, here, first, {keys.data(), values.data(), kv_heads, capacity, dim});
      heads_to_cache(*cuda_, there, first, {gkeys.data(), gvalues.data(), kv_heads, capacity, dim});
      expect_near(gq.read(), q, 1e-5);
      expect_near(gkeys.read(), keys, 1e-5);
      EXPECT_EQ(gvalues.read(), values);
    }
  }
}

TEST_F(CudaKernel, RoutesAsTheHostDoes) {
  for (const auto& [experts, k] :
       {std::pair<int64_t, int64_t>{8, 2}, {64, 6}, {256, 8}, {1000, 10}, {1, 1}, {40, 40}}) {
    for (const bool renormalise : {false, true}) {
      const int64_t rows = 37;
      std::vector<float> logits = reals(rows * experts, 4);
      for (size_t i = 0; i < logits.size(); i += 3) logits[i] = 1.5f;  // ties
      std::vector<int32_t> ids(static_cast<size_t>(rows * k));
      std::vector<float> weights(ids.size());
      GpuArray<float> gl(*cuda_, logits), gw(*cuda_, weights);
      GpuArray<int32_t> gi(*cuda_, ids);
      router_top_k(*host_, logits.data(), rows, experts, k, renormalise, ids.data(), weights.data());
      router_top_k(*cuda_, gl.data(), rows, experts, k, renormalise, gi.data(), gw.data());
      EXPECT_EQ(gi.read(), ids) << experts << " experts";
      expect_near(gw.read(), weights, 1e-5);
    }
  }
}

TEST_F(CudaKernel, AttendsOverAnyLengthAndHeadSize) {
  for (const auto& [format, dim] : {std::pair<KvFormat, int64_t>{KvFormat::kF32, 16},
                                    {KvFormat::kBf16, 16},
                                    {KvFormat::kF32, 64},
                                    {KvFormat::kBf16, 64},
                                    {KvFormat::kF32, 128},
                                    {KvFormat::kBf16, 128},
                                    {KvFormat::kF32, 256},
                                    {KvFormat::kBf16, 256},
                                    {KvFormat::kF32, 80},
                                    {KvFormat::kBf16, 80}}) {
    for (const auto& [first, rows] : {std::pair<int64_t, int64_t>{0, 1},
                                      {0, 15},
                                      {63, 5},
                                      {700, 1},
                                      {0, 16},
                                      {0, 130},
                                      {5, 64},
                                      {700, 40}}) {
      const int64_t heads = 4, kv_heads = 2, capacity = first + rows + 3;
      std::vector<float> k = reals(rows * kv_heads * dim), v = reals(rows * kv_heads * dim);
      std::vector<float> keys = reals(kv_heads * capacity * dim), values = reals(kv_heads * capacity * dim);
      if (format == KvFormat::kBf16) {  // as pairs of numbers: garbage may be NaN
        std::fill(keys.begin(), keys.end(), 0.0f);
        std::fill(values.begin(), values.end(), 0.0f);
      }
      const std::vector<float> q = reals(rows * heads * dim, 2);
      std::vector<float> y(q.size());
      GpuArray<float> gk(*cuda_, k), gv(*cuda_, v), gkeys(*cuda_, keys), gvalues(*cuda_, values),
          gq(*cuda_, q), gy(*cuda_, y);
      const KvLayer host_cache{keys.data(), values.data(), kv_heads, capacity, dim, format};
      const KvLayer cuda_cache{gkeys.data(), gvalues.data(), kv_heads, capacity, dim, format};
      kv_store(*host_, k.data(), v.data(), rows, first, host_cache);
      kv_store(*cuda_, gk.data(), gv.data(), rows, first, cuda_cache);
      EXPECT_EQ(gkeys.read(), keys);
      attention(*host_, q.data(), rows, heads, first, 0.125f, host_cache, nullptr, y.data());
      attention(*cuda_, gq.data(), rows, heads, first, 0.125f, cuda_cache, nullptr, gy.data());
      // On tensor cores queries and softmax weights are rounded to bf16.
      const bool tensors = format == KvFormat::kBf16 && rows >= 16 && dim % 64 == 0;
      expect_near(gy.read(), y, tensors ? 5e-3 : 1e-5);
    }
  }
}

// The rows of a prompt, however many others are beside them.
TEST_F(CudaKernel, AttendsOnTensorCoresToARowAlone) {
  for (const int64_t dim : {64, 128, 256}) {
    const int64_t heads = 4, kv_heads = 2, first = 300, rows = 100, capacity = first + rows;
    GpuArray<float> k(*cuda_, reals(capacity * kv_heads * dim)), v(*cuda_, reals(capacity * kv_heads * dim));
    GpuArray<float> q(*cuda_, reals(rows * heads * dim, 2));
    GpuArray<uint16_t> keys(*cuda_, std::vector<uint16_t>(static_cast<size_t>(kv_heads * capacity * dim))),
        values(*cuda_, keys.read());
    const KvLayer cache{keys.data(), values.data(), kv_heads, capacity, dim, KvFormat::kBf16};
    kv_store(*cuda_, k.data(), v.data(), capacity, 0, cache);
    GpuArray<float> all(*cuda_, reals(rows * heads * dim)), some(*cuda_, all.read());
    attention(*cuda_, q.data(), rows, heads, first, 0.125f, cache, nullptr, all.data());
    for (const auto& [from, count] : {std::pair<int64_t, int64_t>{0, 16}, {3, 20}, {29, 71}}) {
      attention(*cuda_, q.data() + from * heads * dim, count, heads, first + from, 0.125f, cache, nullptr,
                some.data());
      const std::vector<float> got = some.read(), want = all.read();
      EXPECT_TRUE(
          std::equal(got.begin(), got.begin() + count * heads * dim, want.begin() + from * heads * dim))
          << dim << ", rows from " << from;
    }
  }
}

// Long caches: segments side by side, one after the other, and at every cut give the same bits.
TEST_F(CudaKernel, AttendsInSegmentsWithTheSameBits) {
  for (const int64_t dim : {64, 256, 80}) {
    for (const int64_t capacity : {2000, 40000}) {
      const int64_t heads = 4, kv_heads = 2, rows = 3, first = 1700;
      const std::vector<float> q = reals(rows * heads * dim, 2);
      std::vector<float> keys = reals(kv_heads * capacity * dim), values = reals(kv_heads * capacity * dim);
      std::vector<float> y(q.size());
      GpuArray<float> gkeys(*cuda_, keys), gvalues(*cuda_, values), gq(*cuda_, q), one(*cuda_, y),
          other(*cuda_, y);
      GpuArray<float> partials(*cuda_,
                               std::vector<float>(static_cast<size_t>(attention_partials(heads, dim))));
      GpuArray<int32_t> positions(*cuda_, {first, first + 1, first + 2});
      const KvLayer host_cache{keys.data(), values.data(), kv_heads, capacity, dim};
      const KvLayer cache{gkeys.data(), gvalues.data(), kv_heads, capacity, dim};
      attention(*host_, q.data(), rows, heads, first, 0.125f, host_cache, nullptr, y.data());
      attention(*cuda_, gq.data(), rows, heads, first, 0.125f, cache, nullptr, one.data());
      // The position on the device is what counts, not the one that was recorded.
      attention(*cuda_, gq.data(), rows, heads, {5, positions.data()}, 0.125f, cache, partials.data(),
                other.data());
      expect_near(one.read(), y, 1e-5);
      EXPECT_EQ(other.read(), one.read()) << dim << ", " << capacity;
    }
  }
}

class CudaFormat : public CudaKernel,
                   public ::testing::WithParamInterface<std::tuple<Compute, WeightFormat>> {
 protected:
  const Compute compute_ = std::get<0>(GetParam());
  const WeightFormat format_ = std::get<1>(GetParam());

  void compute_experts(int64_t hidden, int64_t inner);
};

TEST_P(CudaFormat, MultipliesEmbedsAndSplits) {
  for (const auto& [rows, n, k] : {std::tuple<int64_t, int64_t, int64_t>{1, 8, 64},
                                   {3, 70, 128},
                                   {13, 33, 2048},
                                   {40, 300, 2080},
                                   {300, 5700, 96}}) {
    MatrixData w(random_, format_, n, k);
    w.view.compute = compute_;
    const std::vector<float> x = reals(rows * k), bias = reals(n);
    std::vector<float> want(static_cast<size_t>(rows * n));
    linear(*host_, x.data(), rows, w.view, bias.data(), want.data());
    GpuArray<std::byte> data(*cuda_, w.data),
        scale(*cuda_, w.scale.empty() ? std::vector<std::byte>(16) : w.scale);
    Matrix there = w.view;
    there.data = data.data();
    there.scale = w.scale.empty() ? nullptr : scale.data();
    GpuArray<float> gx(*cuda_, x), gb(*cuda_, bias), gy(*cuda_, want);
    linear(*cuda_, gx.data(), rows, there, gb.data(), gy.data());
    expect_near(gy.read(), want, 1e-5);
    // A row does not depend on the others, but for the kernel that so many take in bf16.
    const std::vector<float> all = gy.read();
    const bool tensors = compute_ == Compute::kBf16;
    const int64_t fewer = tensors && rows >= 200 ? 200 : tensors && rows >= 16 ? 17 : 1;
    linear(*cuda_, gx.data(), fewer, there, gb.data(), gy.data());
    const std::vector<float> some = gy.read();
    EXPECT_TRUE(std::equal(some.begin(), some.begin() + fewer * n, all.begin()));

    const std::vector<int32_t> ids = {static_cast<int32_t>(n - 1), 0, static_cast<int32_t>(n / 2)};
    GpuArray<int32_t> gi(*cuda_, ids);
    std::vector<float> rows_of(static_cast<size_t>(3 * k));
    GpuArray<float> ge(*cuda_, rows_of);
    embedding(*host_, ids.data(), 3, w.view, rows_of.data());
    embedding(*cuda_, gi.data(), 3, there, ge.data());
    EXPECT_EQ(ge.read(), rows_of);
  }
}

TEST_P(CudaFormat, MultipliesInParts) {
  const int64_t k = 2048 + 128;
  for (const int64_t rows : {1, 6, 50}) {
    MatrixData a(random_, format_, 71, k), gate(random_, format_, 33, k), up(random_, format_, 33, k);
    const MatrixData other(random_, WeightFormat::kF32, 5, k);
    a.view.compute = gate.view.compute = up.view.compute = compute_;
    const std::vector<float> x = reals(rows * k), bias = reals(71), old = reals(rows * 71),
                             factors = reals(rows);
    std::vector<float> y(old.size()), z(static_cast<size_t>(rows * 33)), o(static_cast<size_t>(rows * 5)),
        sum = old;
    const auto run = [&](Stream& stream, const float* in, const Matrix(&w)[4], const float* b, const float* f,
                         float* y_, float* z_, float* o_, float* sum_) {
      linear_parts(stream, in, rows,
                   {{.w = w[0], .bias = b, .y = y_},
                    {.w = w[1], .y = z_, .up = w[2]},
                    {.w = w[3], .y = o_},
                    {.w = w[0], .bias = b, .y = sum_, .add = true, .gate = f}});
    };
    run(*host_, x.data(), {a.view, gate.view, up.view, other.view}, bias.data(), factors.data(), y.data(),
        z.data(), o.data(), sum.data());
    std::vector<std::unique_ptr<GpuArray<std::byte>>> memory;
    const auto there = [&](const MatrixData& from) {
      Matrix matrix = from.view;
      memory.push_back(std::make_unique<GpuArray<std::byte>>(*cuda_, from.data));
      matrix.data = memory.back()->data();
      if (from.scale.empty()) return matrix;
      memory.push_back(std::make_unique<GpuArray<std::byte>>(*cuda_, from.scale));
      matrix.scale = memory.back()->data();
      return matrix;
    };
    GpuArray<float> gx(*cuda_, x), gb(*cuda_, bias), gf(*cuda_, factors), gy(*cuda_, y), gz(*cuda_, z),
        go(*cuda_, o), gsum(*cuda_, old);
    run(*cuda_, gx.data(), {there(a), there(gate), there(up), there(other)}, gb.data(), gf.data(), gy.data(),
        gz.data(), go.data(), gsum.data());
    expect_near(gy.read(), y, 1e-5);
    expect_near(gz.read(), z, 1e-5);
    expect_near(go.read(), o, 1e-5);
    expect_near(gsum.read(), sum, 1e-5);
  }
}

TEST_P(CudaFormat, ComputesExpertsThatLieAnywhere) {
  compute_experts(64, 32);
  compute_experts(320, 224);
}

void CudaFormat::compute_experts(int64_t hidden, int64_t inner) {
  const int64_t experts = 9, k = 3;
  const RowLayout layout = row_layout(format_, hidden, inner);
  std::vector<std::byte> rows(static_cast<size_t>(experts + 2) * layout.row_bytes);
  std::vector<int32_t> row_of(static_cast<size_t>(experts));
  std::vector<float> scalars(static_cast<size_t>(experts * kScalarsPerExpert));
  for (int64_t e = 0; e < experts; ++e) {
    row_of[static_cast<size_t>(e)] = static_cast<int32_t>(e == 4 ? -1 : (e * 7) % 11);
    const MatrixData gate(random_, format_, inner, hidden), up(random_, format_, inner, hidden);
    const MatrixData down(random_, format_, hidden, inner);
    for (int i = 0; i < kScalarsPerExpert; ++i) {
      scalars[static_cast<size_t>(e * kScalarsPerExpert + i)] =
          format_ == WeightFormat::kNvfp4 ? random_.real(0.1f, 1) : 1.0f;
    }
    if (e == 4) continue;
    std::byte* row = rows.data() + static_cast<size_t>(row_of[static_cast<size_t>(e)]) * layout.row_bytes;
    const auto put = [&](const MatrixData& matrix, const RowLayout::Part& numbers,
                         const RowLayout::Part& scales, size_t half) {
      std::copy(matrix.data.begin(), matrix.data.end(), row + numbers.offset + half * numbers.bytes / 2);
      std::copy(matrix.scale.begin(), matrix.scale.end(), row + scales.offset + half * scales.bytes / 2);
    };
    put(gate, layout.gate_up, layout.gate_up_scale, 0);
    put(up, layout.gate_up, layout.gate_up_scale, 1);
    put(down, layout.down, layout.down_scale, 0);
  }
  for (const int64_t n : {1, 2, 40, 300}) {
    const std::vector<float> x = reals(n * hidden);
    std::vector<int32_t> ids(static_cast<size_t>(n * k));
    for (int32_t& id : ids)
      id = random_.integer(0, 10) == 0 ? -1 : random_.integer(0, static_cast<int>(experts) - 1);
    const std::vector<float> weights = reals(n * k);
    std::vector<float> activations(static_cast<size_t>(n * k * inner)),
        outputs(static_cast<size_t>(n * k * hidden), 0.5f);
    std::vector<float> y(static_cast<size_t>(n * hidden));
    GpuArray<std::byte> grows(*cuda_, rows);
    GpuArray<int32_t> gwhere(*cuda_, row_of), gids(*cuda_, ids);
    GpuArray<float> gscalars(*cuda_, scalars), gx(*cuda_, x), gw(*cuda_, weights), ga(*cuda_, activations),
        go(*cuda_, outputs), gy(*cuda_, y);
    const ExpertRows host_view{layout, rows.data(), row_of.data(), scalars.data(), experts, compute_};
    const ExpertRows cuda_view{layout, grows.data(), gwhere.data(), gscalars.data(), experts, compute_};
    const ExpertRoutes host_routes{ids.data(), weights.data(), n, k},
        cuda_routes{gids.data(), gw.data(), n, k};
    for (const auto& [first, last] : {std::pair<int32_t, int32_t>{0, 5}, {5, 9}}) {  // two tiles
      expert_products(*host_, x.data(), host_routes, host_view, first, last, activations.data(),
                      outputs.data());
      expert_products(*cuda_, gx.data(), cuda_routes, cuda_view, first, last, ga.data(), go.data());
    }
    // An activation that lies between two bf16 numbers may go to either.
    const double tolerance = compute_ == Compute::kBf16 ? 2e-3 : 1e-5;
    expect_near(go.read(), outputs, tolerance);
    expert_sums(*host_, outputs.data(), host_routes, hidden, y.data());
    expert_sums(*cuda_, go.data(), cuda_routes, hidden, gy.data());
    expect_near(gy.read(), y, tolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, CudaFormat,
                         ::testing::Combine(::testing::Values(Compute::kF32, Compute::kBf16),
                                            ::testing::Values(WeightFormat::kF32, WeightFormat::kF16,
                                                              WeightFormat::kBf16, WeightFormat::kFp8Block,
                                                              WeightFormat::kFp8Row, WeightFormat::kNvfp4,
                                                              WeightFormat::kMxfp4)),
                         [](const auto& test) {
                           return std::string(name_of(std::get<1>(test.param))) + "_in_" +
                                  std::string(name_of(std::get<0>(test.param)));
                         });

}  // namespace
}  // namespace sluice::testing
