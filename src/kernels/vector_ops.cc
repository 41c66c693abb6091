// Dot product and scaled addition, plain and with AVX2.
#include "kernels/vector_ops.h"

#include "base/cpu.h"
#include "base/scalar.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sluice {
namespace {

float dot_plain(const float* a, const float* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return static_cast<float>(sum);
}

void add_scaled_plain(float* y, const float* x, float factor, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

float dot_bf16_plain(const float* a, const uint16_t* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(bf16_to_f32(b[i]));
  return static_cast<float>(sum);
}

void add_scaled_bf16_plain(float* y, const uint16_t* x, float factor, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += factor * bf16_to_f32(x[i]);
}

constexpr VectorOps kPlain = {dot_plain, add_scaled_plain, dot_bf16_plain, add_scaled_bf16_plain};

#if defined(__x86_64__)

#define SLUICE_AVX2 __attribute__((target("avx2,fma")))

SLUICE_AVX2 inline __m256 load(const float* p) { return _mm256_loadu_ps(p); }
SLUICE_AVX2 inline __m256 load(const uint16_t* p) {
  const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(codes), 16));
}
float widen(float value) { return value; }
float widen(uint16_t value) { return bf16_to_f32(value); }

template <class B>
SLUICE_AVX2 float dot_avx2(const float* a, const B* b, int64_t n) {
  __m256 s0 = _mm256_setzero_ps(), s1 = _mm256_setzero_ps();
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    s0 = _mm256_fmadd_ps(load(a + i), load(b + i), s0);
    s1 = _mm256_fmadd_ps(load(a + i + 8), load(b + i + 8), s1);
  }
  const __m256 s = _mm256_add_ps(s0, s1);
  __m128 h = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
  h = _mm_add_ps(h, _mm_movehl_ps(h, h));
  h = _mm_add_ss(h, _mm_movehdup_ps(h));
  float sum = _mm_cvtss_f32(h);
  for (; i < n; ++i) sum += a[i] * widen(b[i]);
  return sum;
}

template <class X>
SLUICE_AVX2 void add_scaled_avx2(float* y, const X* x, float factor, int64_t n) {
  const __m256 f = _mm256_set1_ps(factor);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(y + i, _mm256_fmadd_ps(f, load(x + i), load(y + i)));
  }
  for (; i < n; ++i) y[i] += factor * widen(x[i]);
}

constexpr VectorOps kAvx2 = {dot_avx2<float>, add_scaled_avx2<float>, dot_avx2<uint16_t>,
                             add_scaled_avx2<uint16_t>};

#endif

}  // namespace

const VectorOps& vector_ops() {
#if defined(__x86_64__)
  static const VectorOps& best = simd_level() >= SimdLevel::kAvx2 ? kAvx2 : kPlain;
  return best;
#else
  return kPlain;
#endif
}

}  // namespace sluice
