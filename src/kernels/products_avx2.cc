// Dot products with AVX2, FMA and F16C.
//
// The canonical sum of one output: one accumulator of 8 lanes, blocks of 8 columns in order, lanes reduced in
// a fixed tree, then the columns past the last full group of 16 one by one. In bf16 FP8 with scales for
// blocks does this for each block of 128 columns, multiplies its lanes by the scale and adds them to the
// row's. A single row is multiplied straight from the weight's format (decode is bound by the bytes of the
// weights); several rows share a decoded panel. Both follow that sum.
#include "kernels/products.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/scalar.h"
#include "kernels/bf16_rows.h"

#define SLUICE_AVX2 __attribute__((target("avx2,fma,f16c")))

namespace sluice {
namespace {

constexpr int64_t kGroup = 16;      // columns that one load gives
constexpr int64_t kPanelRows = 32;  // weight rows decoded together: 256 KiB of f32 at k = 2048, an L2 cache
constexpr int64_t kTileRows = 4;    // 4 x 2 accumulators and their operands fit the 16 registers

struct Pair {
  __m256 low, high;  // columns 0..7 and 8..15 of a group
};

/// To bf16, nearest even; NaN stays NaN.
SLUICE_AVX2 inline __m256 rounded(__m256 values) {
  const __m256i bits = _mm256_castps_si256(values);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i sum = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256 result = _mm256_castsi256_ps(_mm256_and_si256(sum, _mm256_set1_epi32(-0x10000)));
  return _mm256_blendv_ps(result, values, _mm256_cmp_ps(values, values, _CMP_UNORD_Q));
}
template <Compute kCompute>
SLUICE_AVX2 inline __m256 as_read(__m256 values) {
  return kCompute == Compute::kBf16 ? rounded(values) : values;
}

// Loaders: group `g` of weight row `j`, counted from the row that the loader was made for.
template <Compute kCompute>
struct F32Rows {
  const float* data;
  int64_t k;
  F32Rows(const Matrix& w, int64_t first) : data(static_cast<const float*>(w.data) + first * w.k), k(w.k) {}
  SLUICE_AVX2 Pair load(int64_t j, int64_t g) const {
    const float* p = data + j * k + g * kGroup;
    return {as_read<kCompute>(_mm256_loadu_ps(p)), as_read<kCompute>(_mm256_loadu_ps(p + 8))};
  }
};

template <Compute kCompute>
struct F16Rows {
  const uint16_t* data;
  int64_t k;
  F16Rows(const Matrix& w, int64_t first)
      : data(static_cast<const uint16_t*>(w.data) + first * w.k), k(w.k) {}
  SLUICE_AVX2 Pair load(int64_t j, int64_t g) const {
    const auto* p = reinterpret_cast<const __m128i*>(data + j * k + g * kGroup);
    return {as_read<kCompute>(_mm256_cvtph_ps(_mm_loadu_si128(p))),
            as_read<kCompute>(_mm256_cvtph_ps(_mm_loadu_si128(p + 1)))};
  }
};

template <Compute>
struct Bf16Rows {
  const uint16_t* data;
  int64_t k;
  Bf16Rows(const Matrix& w, int64_t first)
      : data(static_cast<const uint16_t*>(w.data) + first * w.k), k(w.k) {}
  SLUICE_AVX2 static __m256 widen(__m128i halves) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
  }
  SLUICE_AVX2 Pair load(int64_t j, int64_t g) const {
    const auto* p = reinterpret_cast<const __m128i*>(data + j * k + g * kGroup);
    return {widen(_mm_loadu_si128(p)), widen(_mm_loadu_si128(p + 1))};
  }
};

/// Four-bit codes of 16 columns, low nibble first, times `scale`.
SLUICE_AVX2 inline Pair load_fp4(const uint8_t* codes, float scale) {
  // Twice the e2m1 values, so that they are integers; the half goes into the scale, exactly.
  const __m128i doubled = _mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes));
  const __m128i mask = _mm_set1_epi8(15);
  const __m128i even = _mm_and_si128(bytes, mask);
  const __m128i odd = _mm_and_si128(_mm_srli_epi16(bytes, 4), mask);
  const __m128i values = _mm_shuffle_epi8(doubled, _mm_unpacklo_epi8(even, odd));
  const __m256 factor = _mm256_set1_ps(scale * 0.5f);
  const __m256 low = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(values));
  const __m256 high = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(values, 8)));
  return {_mm256_mul_ps(low, factor), _mm256_mul_ps(high, factor)};
}

template <Compute kCompute>
struct Nvfp4Rows {
  const uint8_t *codes, *scales;
  int64_t k;
  float global;
  Nvfp4Rows(const Matrix& w, int64_t first)
      : codes(static_cast<const uint8_t*>(w.data) + first * w.k / 2),
        scales(static_cast<const uint8_t*>(w.scale) + first * w.k / 16),
        k(w.k),
        global(kCompute == Compute::kBf16 ? 1.0f : w.global) {}
  SLUICE_AVX2 Pair load(int64_t j, int64_t g) const {
    return load_fp4(codes + j * k / 2 + g * 8, kE4m3Values[scales[j * k / 16 + g]] * global);
  }
};

template <Compute>
struct Mxfp4Rows {
  const uint8_t *codes, *scales;
  int64_t k;
  Mxfp4Rows(const Matrix& w, int64_t first)
      : codes(static_cast<const uint8_t*>(w.data) + first * w.k / 2),
        scales(static_cast<const uint8_t*>(w.scale) + first * w.k / 32),
        k(w.k) {}
  SLUICE_AVX2 Pair load(int64_t j, int64_t g) const {
    return load_fp4(codes + j * k / 2 + g * 8, e8m0_to_f32(scales[j * k / 32 + g / 2]));
  }
};

/// Sixteen e4m3 codes times `scale`, as the reference multiplies them.
SLUICE_AVX2 inline Pair load_fp8(const uint8_t* codes, float scale) {
  // With its fields moved up by 7 bits, a code is the f16 of its value / 256: the exponents' biases differ by
  // 8. Subnormals are right, too; only NaN is not an f16's NaN. The factor is exact.
  const __m256i wide = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
  const __m256i halves = _mm256_and_si256(_mm256_slli_epi16(wide, 7), _mm256_set1_epi16(int16_t(0xbf80)));
  const __m256i magnitude = _mm256_and_si256(wide, _mm256_set1_epi16(0x7f));
  const __m256i nan = _mm256_cmpeq_epi16(magnitude, _mm256_set1_epi16(0x7f));
  const __m256i fixed = _mm256_or_si256(halves, nan);
  const __m256 up = _mm256_set1_ps(256.0f), factor = _mm256_set1_ps(scale);
  const __m256 low = _mm256_mul_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(fixed)), up);
  const __m256 high = _mm256_mul_ps(_mm256_cvtph_ps(_mm256_extracti128_si256(fixed, 1)), up);
  return {_mm256_mul_ps(low, factor), _mm256_mul_ps(high, factor)};
}

template <Compute kCompute>
struct Fp8BlockRows {
  const uint8_t* codes;
  const float* scales;
  int64_t k, first, blocks;
  Fp8BlockRows(const Matrix& w, int64_t first_row)
      : codes(static_cast<const uint8_t*>(w.data) + first_row * w.k),
        scales(static_cast<const float*>(w.scale)),
        k(w.k),
        first(first_row),
        blocks((w.k + kFp8BlockSize - 1) / kFp8BlockSize) {}
  SLUICE_AVX2 Pair load(int64_t j, int64_t g) const {
    const float scale = kCompute == Compute::kBf16
                            ? 1.0f
                            : scales[(first + j) / kFp8BlockSize * blocks + g * kGroup / kFp8BlockSize];
    return load_fp8(codes + j * k + g * kGroup, scale);
  }
};

template <Compute kCompute>
struct Fp8Rows {
  const uint8_t* codes;
  const float* scales;
  int64_t k;
  Fp8Rows(const Matrix& w, int64_t first)
      : codes(static_cast<const uint8_t*>(w.data) + first * w.k),
        scales(static_cast<const float*>(w.scale) + first),
        k(w.k) {}
  SLUICE_AVX2 Pair load(int64_t j, int64_t g) const {
    return load_fp8(codes + j * k + g * kGroup, kCompute == Compute::kBf16 ? 1.0f : scales[j]);
  }
};

SLUICE_AVX2 inline float reduce(__m256 v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  s = _mm_add_ss(s, _mm_movehdup_ps(s));
  return _mm_cvtss_f32(s);
}

/// What multiplies sums of weight rows from `first` on: those of blocks of `columns`, and finished ones.
struct Factors {
  const Matrix& w;
  const int64_t first;
  const bool bf16 = w.compute == Compute::kBf16;
  const int64_t columns = bf16 ? bf16_factor_columns(w) : w.k;
  const bool in_blocks = columns < w.k;

  float of_block(int64_t j, int64_t block) const {
    return in_blocks ? bf16_factor(w, first + j, block) : 1.0f;
  }
  float of_sum(int64_t j) const { return bf16 && !in_blocks ? bf16_factor(w, first + j, 0) : 1.0f; }
};

// The columns past the last full group; only matrices with a ragged k have them.
float tail(const float* x, const float* w, int64_t begin, int64_t end) {
  float sum = 0;
  for (int64_t k = begin; k < end; ++k) sum += x[k] * w[k];
  return sum;
}

/// N weight rows from `first` times one row of x, straight from the format.
template <class Rows, int N>
SLUICE_AVX2 void one_row(const float* x, const Matrix& w, int64_t first, float* y) {
  const Rows rows(w, first);
  const Factors factors{w, first};
  const int64_t columns = factors.columns;
  __m256 totals[N];
  for (int j = 0; j < N; ++j) totals[j] = _mm256_setzero_ps();
  for (int64_t block = 0; block * columns < w.k; ++block) {
    __m256 sums[N];
    for (int j = 0; j < N; ++j) sums[j] = _mm256_setzero_ps();
    const int64_t end = std::min(w.k, (block + 1) * columns) / kGroup;
    for (int64_t g = block * columns / kGroup; g < end; ++g) {
      const __m256 x0 = _mm256_loadu_ps(x + g * kGroup), x1 = _mm256_loadu_ps(x + g * kGroup + 8);
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j) {
        const Pair pair = rows.load(j, g);
        sums[j] = _mm256_fmadd_ps(x1, pair.high, _mm256_fmadd_ps(x0, pair.low, sums[j]));
      }
    }
    for (int j = 0; j < N; ++j)
      totals[j] = _mm256_fmadd_ps(sums[j], _mm256_set1_ps(factors.of_block(j, block)), totals[j]);
  }
  for (int j = 0; j < N; ++j) y[j] = reduce(totals[j]) * factors.of_sum(j);
}

/// R rows of x times N weight rows of a decoded panel, from its row j0 on.
template <int R, int N>
SLUICE_AVX2 void tile(const float* const* x, const float* panel, int64_t stride, const Factors& factors,
                      float* const* y, int64_t j0) {
  const int64_t k = factors.w.k, full = k / kGroup * kGroup, columns = factors.columns;
  __m256 totals[R][N];
  for (int r = 0; r < R; ++r)
    for (int j = 0; j < N; ++j) totals[r][j] = _mm256_setzero_ps();
  for (int64_t block = 0; block * columns < full; ++block) {
    __m256 sums[R][N];
    for (int r = 0; r < R; ++r)
      for (int j = 0; j < N; ++j) sums[r][j] = _mm256_setzero_ps();
    const int64_t end = std::min(full, (block + 1) * columns);
    for (int64_t i = block * columns; i < end; i += 8) {
      __m256 w[N];
      for (int j = 0; j < N; ++j) w[j] = _mm256_loadu_ps(panel + (j0 + j) * stride + i);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const __m256 value = _mm256_loadu_ps(x[r] + i);
        for (int j = 0; j < N; ++j) sums[r][j] = _mm256_fmadd_ps(value, w[j], sums[r][j]);
      }
    }
    for (int j = 0; j < N; ++j) {
      const __m256 factor = _mm256_set1_ps(factors.of_block(j0 + j, block));
      for (int r = 0; r < R; ++r) totals[r][j] = _mm256_fmadd_ps(sums[r][j], factor, totals[r][j]);
    }
  }
  const int64_t last = (k - 1) / columns;
  for (int r = 0; r < R; ++r) {
    for (int j = 0; j < N; ++j) {
      const float rest = tail(x[r], panel + (j0 + j) * stride, full, k);
      y[r][j0 + j] = (reduce(totals[r][j]) + rest * factors.of_block(j0 + j, last)) * factors.of_sum(j0 + j);
    }
  }
}

template <int N>
void tile_rows(int64_t rows, const float* const* x, const float* panel, int64_t stride,
               const Factors& factors, float* const* y, int64_t j0) {
  switch (rows) {
    case 1:
      return tile<1, N>(x, panel, stride, factors, y, j0);
    case 2:
      return tile<2, N>(x, panel, stride, factors, y, j0);
    case 3:
      return tile<3, N>(x, panel, stride, factors, y, j0);
    default:
      return tile<4, N>(x, panel, stride, factors, y, j0);
  }
}

template <class Rows>
SLUICE_AVX2 void decode(const Matrix& w, int64_t row, float* values) {
  const Rows source(w, row);
  const int64_t groups = w.k / kGroup;
  for (int64_t g = 0; g < groups; ++g) {
    const Pair pair = source.load(0, g);
    _mm256_storeu_ps(values + g * kGroup, pair.low);
    _mm256_storeu_ps(values + g * kGroup + 8, pair.high);
  }
  if (w.k % kGroup == 0) return;
  // A ragged k: the reference decodes to the same values.
  static thread_local std::vector<float> whole;
  whole.resize(static_cast<size_t>(w.k));
  w.compute == Compute::kBf16 ? decode_row_bf16(w, row, whole.data()) : decode_row(w, row, whole.data());
  std::copy(whole.begin() + groups * kGroup, whole.end(), values + groups * kGroup);
}

template <class Rows>
void run_panels(const float* const* x, int64_t rows, const Matrix& w, int64_t first, int64_t count,
                float* const* y) {
  static thread_local std::vector<float> panel;
  static thread_local std::vector<float*> out;
  const int64_t stride = (w.k + 7) / 8 * 8;
  panel.resize(static_cast<size_t>(kPanelRows * stride));
  out.resize(static_cast<size_t>(rows));
  for (int64_t j0 = 0; j0 < count; j0 += kPanelRows) {
    const int64_t n = std::min(kPanelRows, count - j0);
    const Factors factors{w, first + j0};
    for (int64_t j = 0; j < n; ++j) decode<Rows>(w, first + j0 + j, panel.data() + j * stride);
    for (int64_t r = 0; r < rows; ++r) out[static_cast<size_t>(r)] = y[r] + j0;
    for (int64_t r = 0; r < rows; r += kTileRows) {
      const int64_t some = std::min(kTileRows, rows - r);
      int64_t j = 0;
      for (; j + 2 <= n; j += 2) tile_rows<2>(some, x + r, panel.data(), stride, factors, out.data() + r, j);
      if (j < n) tile_rows<1>(some, x + r, panel.data(), stride, factors, out.data() + r, j);
    }
  }
}

template <class Rows>
void run(const float* const* x, int64_t rows, const Matrix& w, int64_t first, int64_t count,
         float* const* y) {
  if (rows != 1 || w.k % kGroup != 0) return run_panels<Rows>(x, rows, w, first, count, y);
  int64_t j = 0;
  for (; j + 8 <= count; j += 8) one_row<Rows, 8>(x[0], w, first + j, y[0] + j);
  for (; j < count; ++j) one_row<Rows, 1>(x[0], w, first + j, y[0] + j);
}

template <Compute kCompute>
void run_format(const float* const* x, int64_t rows, const Matrix& w, int64_t first, int64_t count,
                float* const* y) {
  switch (w.format) {
    case WeightFormat::kF32:
      return run<F32Rows<kCompute>>(x, rows, w, first, count, y);
    case WeightFormat::kF16:
      return run<F16Rows<kCompute>>(x, rows, w, first, count, y);
    case WeightFormat::kBf16:
      return run<Bf16Rows<kCompute>>(x, rows, w, first, count, y);
    case WeightFormat::kFp8Block:
      return run<Fp8BlockRows<kCompute>>(x, rows, w, first, count, y);
    case WeightFormat::kFp8Row:
      return run<Fp8Rows<kCompute>>(x, rows, w, first, count, y);
    case WeightFormat::kNvfp4:
      return run<Nvfp4Rows<kCompute>>(x, rows, w, first, count, y);
    case WeightFormat::kMxfp4:
      return run<Mxfp4Rows<kCompute>>(x, rows, w, first, count, y);
  }
}

}  // namespace

void products_avx2(const float* const* x, int64_t rows, const Matrix& w, int64_t first, int64_t count,
                   float* const* y) {
  w.compute == Compute::kBf16 ? run_format<Compute::kBf16>(x, rows, w, first, count, y)
                              : run_format<Compute::kF32>(x, rows, w, first, count, y);
}

}  // namespace sluice

#else

namespace sluice {

void products_avx2(const float* const* x, int64_t rows, const Matrix& w, int64_t first, int64_t count,
                   float* const* y) {
  products_ref(x, rows, w, first, count, y);
}

}  // namespace sluice

#endif
