// Dot products with AVX2, FMA and F16C.
#include "kernels/products.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "base/scalar.h"
#include "kernels/bf16_rows.h"

#define SLUICE_TARGET __attribute__((target("avx2,fma,f16c")))
#define SLUICE_INLINE SLUICE_TARGET __attribute__((always_inline)) inline

namespace sluice {
namespace {

struct Vector {
  using Register = __m256;
  static constexpr int kLanes = 8;
  SLUICE_INLINE static Register zero() { return _mm256_setzero_ps(); }
  SLUICE_INLINE static Register set1(float value) { return _mm256_set1_ps(value); }
  SLUICE_INLINE static Register load(const float* p) { return _mm256_loadu_ps(p); }
  SLUICE_TARGET static void store(float* p, Register v) { _mm256_storeu_ps(p, v); }
  SLUICE_INLINE static Register mul(Register a, Register b) { return _mm256_mul_ps(a, b); }
  SLUICE_INLINE static Register fma(Register a, Register b, Register c) { return _mm256_fmadd_ps(a, b, c); }
  SLUICE_TARGET static float reduce(Register v) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    s = _mm_add_ss(s, _mm_movehdup_ps(s));
    return _mm_cvtss_f32(s);
  }
};

/// To bf16, nearest even; NaN stays NaN.
SLUICE_TARGET inline __m256 rounded(__m256 values) {
  const __m256i bits = _mm256_castps_si256(values);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i sum = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256 result = _mm256_castsi256_ps(_mm256_and_si256(sum, _mm256_set1_epi32(-0x10000)));
  return _mm256_blendv_ps(result, values, _mm256_cmp_ps(values, values, _CMP_UNORD_Q));
}
template <Compute kCompute>
SLUICE_TARGET inline __m256 as_read(__m256 values) {
  return kCompute == Compute::kBf16 ? rounded(values) : values;
}

/// A loader's columns in their own order, 16 a chunk, 8 weight rows at once.
struct InOrder {
  static constexpr int kChunk = 16, kTogether = 8;
  static constexpr float kUnit = 1;
  static constexpr int column_of(int i) { return i; }
};

template <Compute kCompute>
struct F32Rows : InOrder {
  const float* data;
  int64_t k;
  F32Rows(const Matrix& w, int64_t first) : data(static_cast<const float*>(w.data) + first * w.k), k(w.k) {}
  template <class Sink>
  SLUICE_INLINE void load(int64_t j, int64_t c, const Sink& sink) const {
    const float* p = data + j * k + c * kChunk;
    sink(0, as_read<kCompute>(_mm256_loadu_ps(p)));
    sink(1, as_read<kCompute>(_mm256_loadu_ps(p + 8)));
  }
};

template <Compute kCompute>
struct F16Rows : InOrder {
  const uint16_t* data;
  int64_t k;
  F16Rows(const Matrix& w, int64_t first)
      : data(static_cast<const uint16_t*>(w.data) + first * w.k), k(w.k) {}
  template <class Sink>
  SLUICE_INLINE void load(int64_t j, int64_t c, const Sink& sink) const {
    const auto* p = reinterpret_cast<const __m128i*>(data + j * k + c * kChunk);
    sink(0, as_read<kCompute>(_mm256_cvtph_ps(_mm_loadu_si128(p))));
    sink(1, as_read<kCompute>(_mm256_cvtph_ps(_mm_loadu_si128(p + 1))));
  }
};

// Pairs of 16-bit numbers in lanes of 32: the first moves up, the second stays where it is. So a chunk gives
// its even columns, then its odd ones, without a shuffle.
SLUICE_TARGET inline __m256 first_of_pairs(__m256i pairs) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16));
}
SLUICE_TARGET inline __m256 second_of_pairs(__m256i pairs) {
  return _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32(-0x10000)));
}

template <Compute>
struct Bf16Rows {
  static constexpr int kChunk = 16, kTogether = 8;
  static constexpr float kUnit = 1;
  static constexpr int column_of(int i) { return i < 8 ? 2 * i : 2 * (i - 8) + 1; }
  const uint16_t* data;
  int64_t k;
  Bf16Rows(const Matrix& w, int64_t first)
      : data(static_cast<const uint16_t*>(w.data) + first * w.k), k(w.k) {}
  template <class Sink>
  SLUICE_INLINE void load(int64_t j, int64_t c, const Sink& sink) const {
    const __m256i pairs = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data + j * k + c * kChunk));
    sink(0, first_of_pairs(pairs));
    sink(1, second_of_pairs(pairs));
  }
};

/// e2m1 codes of 64 columns, two a byte, low nibble first. Each byte of a number's bf16 is looked up, the
/// bytes are put together, and the pairs split: 0.7 instructions a weight. So come first the even columns of
/// the chunk, then the odd ones; of both the lower half of each 128-bit lane before the upper one; every
/// fourth column.
struct Fp4Chunk {
  static constexpr int kChunk = 64, kTogether = 4;
  static constexpr float kUnit = 1;
  static constexpr int column_of(int i) {
    const int vector = i / 8, lane = i % 8 / 4, odd = vector / 4, upper = vector % 4 / 2, second = vector % 2;
    return 32 * lane + 16 * upper + 4 * (i % 4) + 2 * second + odd;
  }
  /// `first` and `second`: the scales of the columns that lie in each half.
  template <class Sink>
  SLUICE_INLINE static void decode(const uint8_t* codes, __m256 first, __m256 second, const Sink& sink) {
    const __m256i low_bytes = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 0, -128, -64, 0, 64, -128, -64, 0, 0, -128, -64, 0, 64, -128, -64));
    const __m256i high_bytes = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 63, 63, 63, 64, 64, 64, 64, -128, -65, -65, -65, -64, -64, -64, -64));
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
    const __m256i mask = _mm256_set1_epi8(15);
    const __m256i even = _mm256_and_si256(bytes, mask);
    halves(even, low_bytes, high_bytes, first, second, 0, sink);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), mask);
    halves(odd, low_bytes, high_bytes, first, second, 4, sink);
  }

 private:
  template <class Sink>
  SLUICE_INLINE static void halves(__m256i nibbles, __m256i low_bytes, __m256i high_bytes, __m256 first,
                                   __m256 second, int at, const Sink& sink) {
    const __m256i low = _mm256_shuffle_epi8(low_bytes, nibbles);
    const __m256i high = _mm256_shuffle_epi8(high_bytes, nibbles);
    const __m256i lower = _mm256_unpacklo_epi8(low, high), upper = _mm256_unpackhi_epi8(low, high);
    sink(at, _mm256_mul_ps(first_of_pairs(lower), first));
    sink(at + 1, _mm256_mul_ps(second_of_pairs(lower), first));
    sink(at + 2, _mm256_mul_ps(first_of_pairs(upper), second));
    sink(at + 3, _mm256_mul_ps(second_of_pairs(upper), second));
  }
};

template <Compute kCompute>
struct Nvfp4Rows : Fp4Chunk {
  const int64_t stride, scale_stride;
  const uint8_t *const codes, *const scales;
  const float global;
  Nvfp4Rows(const Matrix& w, int64_t first)
      : stride(w.k / 2),
        scale_stride(w.k / kNvfp4Group),
        codes(static_cast<const uint8_t*>(w.data) + first * stride),
        scales(static_cast<const uint8_t*>(w.scale) + first * scale_stride),
        global(w.global) {}
  SLUICE_INLINE __m256 scale_of(uint8_t low_lane, uint8_t high_lane) const {
    const __m256 both =
        _mm256_set_m128(_mm_broadcast_ss(&kE4m3Values[high_lane]), _mm_broadcast_ss(&kE4m3Values[low_lane]));
    return kCompute == Compute::kBf16 ? both : _mm256_mul_ps(both, _mm256_set1_ps(global));
  }
  template <class Sink>
  SLUICE_INLINE void load(int64_t j, int64_t c, const Sink& sink) const {
    const uint8_t* s = scales + j * scale_stride + c * (kChunk / kNvfp4Group);
    decode(codes + j * stride + c * (kChunk / 2), scale_of(s[0], s[2]), scale_of(s[1], s[3]), sink);
  }
};

template <Compute>
struct Mxfp4Rows : Fp4Chunk {
  const int64_t stride, scale_stride;
  const uint8_t *const codes, *const scales;
  Mxfp4Rows(const Matrix& w, int64_t first)
      : stride(w.k / 2),
        scale_stride(w.k / kMxfp4Group),
        codes(static_cast<const uint8_t*>(w.data) + first * stride),
        scales(static_cast<const uint8_t*>(w.scale) + first * scale_stride) {}
  template <class Sink>
  SLUICE_INLINE void load(int64_t j, int64_t c, const Sink& sink) const {
    const uint8_t* s = scales + j * scale_stride + c * (kChunk / kMxfp4Group);
    const __m256 both =
        _mm256_set_m128(_mm_broadcast_ss(&kE8m0Values[s[1]]), _mm_broadcast_ss(&kE8m0Values[s[0]]));
    decode(codes + j * stride + c * (kChunk / 2), both, both, sink);
  }
};

/// e4m3 codes, 32 a chunk: without their scale in bf16, times it as the reference multiplies them in f32.
template <Compute kCompute>
struct Fp8Chunk {
  static constexpr int kChunk = 32, kTogether = 4;
  static constexpr float kUnit = kCompute == Compute::kBf16 ? 256 : 1;
  /// Eight columns of each 128-bit lane at a time.
  static constexpr int column_of(int i) { return 16 * (i % 16 / 8) + 8 * (i / 16) + i % 8; }

  // With its fields moved up by 7 bits, a code is the f16 of its value / 256: the exponents' biases differ by
  // 8. Codes of NaN would be numbers there; weights hardly ever have one.
  template <class Sink>
  SLUICE_INLINE static void decode(const uint8_t* codes, float scale, const Sink& sink) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
    const __m256i nan =
        _mm256_cmpeq_epi8(_mm256_and_si256(bytes, _mm256_set1_epi8(0x7f)), _mm256_set1_epi8(0x7f));
    const __m256i none = _mm256_setzero_si256();
    __m256i lower = _mm256_unpacklo_epi8(none, bytes), upper = _mm256_unpackhi_epi8(none, bytes);
    const __m256i fields = _mm256_set1_epi16(int16_t(0xbf80));
    lower = _mm256_and_si256(_mm256_srai_epi16(lower, 1), fields);
    upper = _mm256_and_si256(_mm256_srai_epi16(upper, 1), fields);
    if (__builtin_expect(!_mm256_testz_si256(nan, nan), 0)) {
      lower = _mm256_or_si256(lower, _mm256_unpacklo_epi8(nan, nan));
      upper = _mm256_or_si256(upper, _mm256_unpackhi_epi8(nan, nan));
    }
    give(0, lower, scale, sink);
    give(2, upper, scale, sink);
  }

 private:
  template <class Sink>
  SLUICE_INLINE static void give(int at, __m256i halves, float scale, const Sink& sink) {
    sink(at, scaled(_mm256_cvtph_ps(_mm256_castsi256_si128(halves)), scale));
    sink(at + 1, scaled(_mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1)), scale));
  }
  SLUICE_INLINE static __m256 scaled(__m256 values, float scale) {
    if (kCompute == Compute::kBf16) return values;
    return _mm256_mul_ps(_mm256_mul_ps(values, _mm256_set1_ps(256.0f)), _mm256_set1_ps(scale));
  }
};

template <Compute kCompute>
struct Fp8BlockRows : Fp8Chunk<kCompute> {
  using Chunk = Fp8Chunk<kCompute>;
  const uint8_t* const codes;
  const float* const scales;
  const int64_t k, first, blocks;
  Fp8BlockRows(const Matrix& w, int64_t first_row)
      : codes(static_cast<const uint8_t*>(w.data) + first_row * w.k),
        scales(static_cast<const float*>(w.scale)),
        k(w.k),
        first(first_row),
        blocks((w.k + kFp8BlockSize - 1) / kFp8BlockSize) {}
  template <class Sink>
  SLUICE_INLINE void load(int64_t j, int64_t c, const Sink& sink) const {
    const int64_t at = (first + j) / kFp8BlockSize * blocks + c * Chunk::kChunk / kFp8BlockSize;
    Chunk::decode(codes + j * k + c * Chunk::kChunk, kCompute == Compute::kBf16 ? 1.0f : scales[at], sink);
  }
};

template <Compute kCompute>
struct Fp8Rows : Fp8Chunk<kCompute> {
  using Chunk = Fp8Chunk<kCompute>;
  const uint8_t* const codes;
  const float* const scales;
  const int64_t k;
  Fp8Rows(const Matrix& w, int64_t first)
      : codes(static_cast<const uint8_t*>(w.data) + first * w.k),
        scales(static_cast<const float*>(w.scale) + first),
        k(w.k) {}
  template <class Sink>
  SLUICE_INLINE void load(int64_t j, int64_t c, const Sink& sink) const {
    Chunk::decode(codes + j * k + c * Chunk::kChunk, scales[j], sink);
  }
};

#include "kernels/products_loops.h"

}  // namespace

const ProductKernels kProductsAvx2 = {SimdLevel::kAvx2, prepare, multiply};

}  // namespace sluice

#endif
