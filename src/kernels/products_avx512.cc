// Dot products with AVX-512 (F, BW, VL, DQ).
#include "kernels/products.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "base/scalar.h"
#include "kernels/bf16_rows.h"

#define SLUICE_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")))
#define SLUICE_INLINE SLUICE_TARGET __attribute__((always_inline)) inline

namespace sluice {
namespace {

struct Vector {
  using Register = __m512;
  static constexpr int kLanes = 16;
  SLUICE_INLINE static Register zero() { return _mm512_setzero_ps(); }
  SLUICE_INLINE static Register set1(float value) { return _mm512_set1_ps(value); }
  SLUICE_INLINE static Register load(const float* p) { return _mm512_loadu_ps(p); }
  SLUICE_TARGET static void store(float* p, Register v) { _mm512_storeu_ps(p, v); }
  SLUICE_INLINE static Register mul(Register a, Register b) { return _mm512_mul_ps(a, b); }
  SLUICE_INLINE static Register fma(Register a, Register b, Register c) { return _mm512_fmadd_ps(a, b, c); }
  SLUICE_TARGET static float reduce(Register v) {
    const __m256 halves = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    s = _mm_add_ss(s, _mm_movehdup_ps(s));
    return _mm_cvtss_f32(s);
  }
};

/// To bf16, nearest even; NaN stays NaN.
SLUICE_TARGET inline __m512 rounded(__m512 values) {
  const __m512i bits = _mm512_castps_si512(values);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i sum = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __m512 result = _mm512_castsi512_ps(_mm512_and_si512(sum, _mm512_set1_epi32(-0x10000)));
  return _mm512_mask_mov_ps(result, _mm512_cmp_ps_mask(values, values, _CMP_UNORD_Q), values);
}
template <Compute kCompute>
SLUICE_TARGET inline __m512 as_read(__m512 values) {
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
    sink(0, as_read<kCompute>(_mm512_loadu_ps(data + j * k + c * kChunk)));
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
    const auto* p = reinterpret_cast<const __m256i*>(data + j * k + c * kChunk);
    sink(0, as_read<kCompute>(_mm512_cvtph_ps(_mm256_loadu_si256(p))));
  }
};

/// Pairs of 16-bit numbers in lanes of 32: the first moves up, the second stays where it is. So a chunk gives
/// its even columns, then its odd ones, without a shuffle.
template <Compute>
struct Bf16Rows {
  static constexpr int kChunk = 32, kTogether = 8;
  static constexpr float kUnit = 1;
  static constexpr int column_of(int i) { return i < 16 ? 2 * i : 2 * (i - 16) + 1; }
  const uint16_t* data;
  int64_t k;
  Bf16Rows(const Matrix& w, int64_t first)
      : data(static_cast<const uint16_t*>(w.data) + first * w.k), k(w.k) {}
  template <class Sink>
  SLUICE_INLINE void load(int64_t j, int64_t c, const Sink& sink) const {
    const __m512i pairs = _mm512_loadu_si512(data + j * k + c * kChunk);
    sink(0, _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)));
    sink(1, _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(-0x10000))));
  }
};

/// e2m1 codes of 32 columns, two a byte, low nibble first: one byte in each lane of 32 bits, whose nibbles
/// look up a number each. Even columns come first, then odd ones.
struct Fp4Chunk {
  static constexpr int kChunk = 32, kTogether = 8;
  static constexpr float kUnit = 1;
  static constexpr int column_of(int i) { return i < 16 ? 2 * i : 2 * (i - 16) + 1; }
  template <class Sink>
  SLUICE_INLINE static void decode(const uint8_t* codes, __m512 scales, const Sink& sink) {
    const __m512 numbers = _mm512_loadu_ps(kE2m1Values.data());
    const __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
    // The lookup takes the lowest four bits of a lane.
    sink(0, _mm512_mul_ps(_mm512_permutexvar_ps(bytes, numbers), scales));
    sink(1, _mm512_mul_ps(_mm512_permutexvar_ps(_mm512_srli_epi32(bytes, 4), numbers), scales));
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
  template <class Sink>
  SLUICE_INLINE void load(int64_t j, int64_t c, const Sink& sink) const {
    const uint8_t* s = scales + j * scale_stride + c * (kChunk / kNvfp4Group);
    const __m512 both =
        _mm512_mask_mov_ps(_mm512_set1_ps(kE4m3Values[s[0]]), 0xff00, _mm512_set1_ps(kE4m3Values[s[1]]));
    decode(codes + j * stride + c * (kChunk / 2),
           kCompute == Compute::kBf16 ? both : _mm512_mul_ps(both, _mm512_set1_ps(global)), sink);
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
    const uint8_t scale = scales[j * scale_stride + c];
    decode(codes + j * stride + c * (kChunk / 2), _mm512_set1_ps(e8m0_to_f32(scale)), sink);
  }
};

/// e4m3 codes: without their scale in bf16, times it as the reference multiplies them in f32.
template <Compute kCompute>
struct Fp8Chunk {
  static constexpr int kChunk = 16, kTogether = 8;
  static constexpr float kUnit = kCompute == Compute::kBf16 ? 256 : 1;
  static constexpr int column_of(int i) { return i; }

  // With its fields moved up by 7 bits, a code is the f16 of its value / 256: the exponents' biases differ by
  // 8. Codes of NaN would be numbers there.
  template <class Sink>
  SLUICE_INLINE static void decode(const uint8_t* codes, float scale, const Sink& sink) {
    const __m256i wide = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
    const __m256i halves = _mm256_and_si256(_mm256_slli_epi16(wide, 7), _mm256_set1_epi16(int16_t(0xbf80)));
    const __m256i magnitude = _mm256_and_si256(wide, _mm256_set1_epi16(0x7f));
    const __m256i nan = _mm256_cmpeq_epi16(magnitude, _mm256_set1_epi16(0x7f));
    const __m512 values = _mm512_cvtph_ps(_mm256_or_si256(halves, nan));
    sink(0, kCompute == Compute::kBf16
                ? values
                : _mm512_mul_ps(_mm512_mul_ps(values, _mm512_set1_ps(256.0f)), _mm512_set1_ps(scale)));
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

const ProductKernels kProductsAvx512 = {SimdLevel::kAvx512, prepare, multiply};

}  // namespace sluice

#endif
