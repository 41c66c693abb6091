// Attention on the host: scores, softmax and weighted sum of one query head at a time.
#include "kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/scalar.h"
#include "base/thread_pool.h"
#include "kernels/cuda/ops.h"
#include "kernels/vector_ops.h"

namespace sluice {
namespace {

/// What attention does with vectors of a cache, by their type.
struct F32Vectors {
  using Value = float;
  static float dot(const float* a, const float* b, int64_t n) { return vector_ops().dot(a, b, n); }
  static void add_scaled(float* y, const float* x, float factor, int64_t n) {
    vector_ops().add_scaled(y, x, factor, n);
  }
  static float store(float value) { return value; }
};
struct Bf16Vectors {
  using Value = uint16_t;
  static float dot(const float* a, const uint16_t* b, int64_t n) { return vector_ops().dot_bf16(a, b, n); }
  static void add_scaled(float* y, const uint16_t* x, float factor, int64_t n) {
    vector_ops().add_scaled_bf16(y, x, factor, n);
  }
  static uint16_t store(float value) { return f32_to_bf16(value); }
};

template <class Body>
void with_vectors(KvFormat format, Body&& body) {
  format == KvFormat::kBf16 ? body(Bf16Vectors()) : body(F32Vectors());
}

/// One query head against positions 0 ... positions - 1.
template <class Vectors, class Value = typename Vectors::Value>
void attend(const float* q, const Value* keys, const Value* values, int64_t positions, int64_t head_dim,
            float scale, std::vector<float>& scores, float* y) {
  scores.resize(static_cast<size_t>(positions));
  float highest = -INFINITY;
  for (int64_t p = 0; p < positions; ++p) {
    const float score = Vectors::dot(q, keys + p * head_dim, head_dim) * scale;
    scores[static_cast<size_t>(p)] = score;
    highest = std::max(highest, score);
  }
  std::fill(y, y + head_dim, 0.0f);
  float sum = 0;
  for (int64_t p = 0; p < positions; ++p) {
    const float weight = std::exp(scores[static_cast<size_t>(p)] - highest);
    sum += weight;
    Vectors::add_scaled(y, values + p * head_dim, weight, head_dim);
  }
  for (int64_t i = 0; i < head_dim; ++i) y[i] /= sum;
}

}  // namespace

void kv_store(Stream& stream, const float* k, const float* v, int64_t rows, const Positions& positions,
              const KvLayer& cache) {
  const int64_t first_position = positions.first;
  SLUICE_CHECK(first_position >= 0 && first_position + rows <= cache.capacity);
  const int64_t width = cache.kv_heads * cache.head_dim;
  stream.launch_both(
      {.name = "kv_store", .reads = {range_of(k, rows * width), range_of(v, rows * width)}},
      [=](RangeSink& sink) {
        for (int64_t h = 0; h < cache.kv_heads; ++h) {
          sink.writes(cache.key_range(h, first_position, rows));
          sink.writes(cache.value_range(h, first_position, rows));
        }
      },
      [=](const HostContext&) {
        with_vectors(cache.format, [=]<class Vectors>(Vectors) {
          using Value = typename Vectors::Value;
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t h = 0; h < cache.kv_heads; ++h) {
              const int64_t from = r * width + h * cache.head_dim, position = first_position + r;
              std::transform(k + from, k + from + cache.head_dim, cache.key<Value>(h, position),
                             Vectors::store);
              std::transform(v + from, v + from + cache.head_dim, cache.value<Value>(h, position),
                             Vectors::store);
            }
          }
        });
      },
      SLUICE_CUDA_OP(cuda::kv_store, k, v, rows, positions, cache));
}

void attention(Stream& stream, const float* q, int64_t rows, int64_t heads, const Positions& positions,
               float scale, const KvLayer& cache, float* partials, float* y) {
  SLUICE_CHECK(cache.kv_heads > 0 && heads % cache.kv_heads == 0);
  const int64_t first_position = positions.first;
  SLUICE_CHECK(first_position >= 0 && first_position + rows <= cache.capacity);
  const int64_t group = heads / cache.kv_heads;
  const int64_t dim = cache.head_dim;
  const int64_t pairs = rows * first_position + rows * (rows + 1) / 2;
  stream.launch_both(
      {.name = "attention",
       .reads = {range_of(q, rows * heads * dim)},
       .writes = {range_of(y, rows * heads * dim)},
       .flops = static_cast<uint64_t>(4 * pairs * heads * dim)},
      [=](RangeSink& sink) {
        for (int64_t h = 0; h < cache.kv_heads; ++h) {
          sink.reads(cache.key_range(h, 0, first_position + rows));
          sink.reads(cache.value_range(h, 0, first_position + rows));
        }
      },
      [=](const HostContext& host) {
        const int64_t cost = std::max<int64_t>(1, pairs * dim / std::max<int64_t>(1, rows));
        const int64_t grain = std::max<int64_t>(1, 64 * 1024 / cost);
        host.pool.parallel_for(rows * heads, grain, [=](int64_t begin, int64_t end) {
          static thread_local std::vector<float> scores;
          for (int64_t i = begin; i < end; ++i) {
            // All rows of a head follow each other, so that its keys stay in the cache.
            const int64_t head = i / rows, row = i % rows;
            const int64_t at = (row * heads + head) * dim;
            with_vectors(cache.format, [&]<class Vectors>(Vectors) {
              using Value = typename Vectors::Value;
              attend<Vectors>(q + at, cache.key<Value>(head / group, 0), cache.value<Value>(head / group, 0),
                              first_position + row + 1, dim, scale, scores, y + at);
            });
          }
        });
      },
      SLUICE_CUDA_OP(cuda::attention, q, rows, heads, positions, scale, cache, partials, y));
}

}  // namespace sluice
