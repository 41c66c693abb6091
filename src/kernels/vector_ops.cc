// Dot product and scaled addition, plain and with AVX2.
#include "kernels/vector_ops.h"

#include "base/cpu.h"

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

#if defined(__x86_64__)

__attribute__((target("avx2,fma"))) float dot_avx2(const float* a, const float* b, int64_t n) {
  __m256 s0 = _mm256_setzero_ps(), s1 = _mm256_setzero_ps();
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    s0 = _mm256_fmadd_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i), s0);
    s1 = _mm256_fmadd_ps(_mm256_loadu_ps(a + i + 8), _mm256_loadu_ps(b + i + 8), s1);
  }
  const __m256 s = _mm256_add_ps(s0, s1);
  __m128 h = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
  h = _mm_add_ps(h, _mm_movehl_ps(h, h));
  h = _mm_add_ss(h, _mm_movehdup_ps(h));
  float sum = _mm_cvtss_f32(h);
  for (; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

__attribute__((target("avx2,fma"))) void add_scaled_avx2(float* y, const float* x, float factor, int64_t n) {
  const __m256 f = _mm256_set1_ps(factor);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(y + i, _mm256_fmadd_ps(f, _mm256_loadu_ps(x + i), _mm256_loadu_ps(y + i)));
  }
  for (; i < n; ++i) y[i] += factor * x[i];
}

#endif

}  // namespace

const VectorOps& vector_ops() {
#if defined(__x86_64__)
  static const VectorOps best = simd_level() >= SimdLevel::kAvx2 ? VectorOps{dot_avx2, add_scaled_avx2}
                                                                 : VectorOps{dot_plain, add_scaled_plain};
#else
  static const VectorOps best = {dot_plain, add_scaled_plain};
#endif
  return best;
}

}  // namespace sluice
