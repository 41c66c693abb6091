// Rotary position embedding.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"

namespace sluice::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void table_kernel(PositionOf position_of, int64_t values, const float* frequencies, int64_t half,
                             float* cos, float* sin) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= values) return;
  const float angle = static_cast<float>(position_of(i / half)) * frequencies[i % half];
  cos[i] = cosf(angle);
  sin[i] = sinf(angle);
}

__global__ void rope_kernel(float* x, int64_t pairs, int64_t heads, int64_t head_dim, const float* cos,
                            const float* sin, int64_t half) {
  let_next_begin();
  wait_for_previous();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= pairs) return;
  const int64_t at = i % half, head = i / half, row = head / heads;
  float* a = x + head * head_dim + at;
  float* b = a + half;
  const float c = cos[row * half + at], s = sin[row * half + at];
  const float first = *a, second = *b;
  *a = first * c - second * s;
  *b = second * c + first * s;
}

}  // namespace

void rope_table(const CudaContext& cuda, const Positions& positions, int64_t rows, const float* frequencies,
                int64_t half, float* cos, float* sin) {
  const int64_t n = rows * half;
  if (n == 0) return;
  table_kernel<<<blocks_for(n, kThreads), kThreads, 0, cuda.stream>>>(PositionOf(positions), n, frequencies,
                                                                      half, cos, sin);
}

void rope(const CudaContext& cuda, float* x, int64_t rows, int64_t heads, int64_t head_dim, const float* cos,
          const float* sin, int64_t half) {
  const int64_t n = rows * heads * half;
  if (n == 0) return;
  launch_behind(cuda, rope_kernel, blocks_for(n, kThreads), kThreads, x, n, heads, head_dim, cos, sin, half);
}

}  // namespace sluice::cuda
