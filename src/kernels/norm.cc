// Norms and element-wise operations on the host.
#include "kernels/norm.h"

#include <algorithm>
#include <cmath>

#include "base/thread_pool.h"
#include "kernels/cuda/ops.h"
#include "kernels/vector_ops.h"

namespace sluice {
namespace {

// Rows worth one piece of parallel work.
int64_t rows_grain(int64_t n) { return std::max<int64_t>(1, 32 * 1024 / std::max<int64_t>(1, n)); }

}  // namespace

void rms_norm(Stream& stream, const float* x, int64_t rows, int64_t n, const float* weight, float epsilon,
              float* y) {
  stream.launch_both(
      {.name = "rms_norm",
       .reads = {range_of(x, rows * n), range_of(weight, n)},
       .writes = {range_of(y, rows * n)},
       .flops = static_cast<uint64_t>(4 * rows * n)},
      [=](const HostContext& host) {
        const auto dot = vector_ops().dot;
        host.pool.parallel_for(rows, rows_grain(n), [=](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) {
            const float* in = x + r * n;
            float* out = y + r * n;
            const float mean = dot(in, in, n) / static_cast<float>(n);
            const float factor = 1.0f / std::sqrt(mean + epsilon);
            for (int64_t i = 0; i < n; ++i) out[i] = in[i] * factor * weight[i];
          }
        });
      },
      SLUICE_CUDA_OP(cuda::rms_norm, x, rows, n, weight, epsilon, y));
}

void add(Stream& stream, float* x, const float* y, int64_t n) {
  stream.launch_both(
      {.name = "add",
       .reads = {range_of(x, n), range_of(y, n)},
       .writes = {range_of(x, n)},
       .flops = static_cast<uint64_t>(n)},
      [=](const HostContext&) {
        for (int64_t i = 0; i < n; ++i) x[i] += y[i];
      },
      SLUICE_CUDA_OP(cuda::add, x, y, n));
}

void add_gated(Stream& stream, float* x, const float* y, const float* gate, int64_t rows, int64_t n) {
  stream.launch_both(
      {.name = "add_gated",
       .reads = {range_of(x, rows * n), range_of(y, rows * n), range_of(gate, rows)},
       .writes = {range_of(x, rows * n)},
       .flops = static_cast<uint64_t>(2 * rows * n)},
      [=](const HostContext&) {
        for (int64_t r = 0; r < rows; ++r) {
          const float factor = 1.0f / (1.0f + std::exp(-gate[r]));
          for (int64_t i = r * n; i < (r + 1) * n; ++i) x[i] += factor * y[i];
        }
      },
      SLUICE_CUDA_OP(cuda::add_gated, x, y, gate, rows, n));
}

void silu_and_multiply_host(const float* gate, const float* up, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = gate[i] / (1.0f + std::exp(-gate[i])) * up[i];
}

void silu_and_multiply(Stream& stream, const float* gate, const float* up, int64_t n, float* y) {
  stream.launch_both(
      {.name = "silu_and_multiply",
       .reads = {range_of(gate, n), range_of(up, n)},
       .writes = {range_of(y, n)},
       .flops = static_cast<uint64_t>(5 * n)},
      [=](const HostContext& host) {
        host.pool.parallel_for(n, 4096, [=](int64_t begin, int64_t end) {
          silu_and_multiply_host(gate + begin, up + begin, end - begin, y + begin);
        });
      },
      SLUICE_CUDA_OP(cuda::silu_and_multiply, gate, up, n, y));
}

}  // namespace sluice
