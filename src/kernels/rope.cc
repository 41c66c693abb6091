// Rotary position embedding on the host.
#include "kernels/rope.h"

#include <cmath>

#include "base/error.h"
#include "kernels/cuda/ops.h"

namespace sluice {

void rope_table(Stream& stream, const Positions& positions, int64_t rows, const float* frequencies,
                int64_t half, float* cos, float* sin) {
  stream.launch_both(
      {.name = "rope_table",
       .reads = {range_of(frequencies, half), range_of(positions.of_rows, positions.of_rows ? rows : 0)},
       .writes = {range_of(cos, rows * half), range_of(sin, rows * half)}},
      [=](const HostContext&) {
        for (int64_t r = 0; r < rows; ++r) {
          const auto position = static_cast<float>(positions.first + r);
          for (int64_t i = 0; i < half; ++i) {
            const float angle = position * frequencies[i];
            cos[r * half + i] = std::cos(angle);
            sin[r * half + i] = std::sin(angle);
          }
        }
      },
      SLUICE_CUDA_OP(cuda::rope_table, positions, rows, frequencies, half, cos, sin));
}

void rope(Stream& stream, float* x, int64_t rows, int64_t heads, int64_t head_dim, const float* cos,
          const float* sin, int64_t half) {
  SLUICE_CHECK(2 * half <= head_dim);
  const int64_t values = rows * heads * head_dim;
  stream.launch_both(
      {.name = "rope",
       .reads = {range_of(x, values), range_of(cos, rows * half), range_of(sin, rows * half)},
       .writes = {range_of(x, values)},
       .flops = static_cast<uint64_t>(6 * rows * heads * half)},
      [=](const HostContext&) {
        for (int64_t r = 0; r < rows; ++r) {
          const float *c = cos + r * half, *s = sin + r * half;
          for (int64_t h = 0; h < heads; ++h) {
            float* a = x + (r * heads + h) * head_dim;
            float* b = a + half;
            for (int64_t i = 0; i < half; ++i) {
              const float first = a[i], second = b[i];
              a[i] = first * c[i] - second * s[i];
              b[i] = second * c[i] + first * s[i];
            }
          }
        }
      },
      SLUICE_CUDA_OP(cuda::rope, x, rows, heads, head_dim, cos, sin, half));
}

}  // namespace sluice
