// Norms and element-wise operations.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"

namespace sluice::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kLongRow = 512;

// A warp a row, so that short rows (heads) fill the card as well as long ones.
__global__ void rms_norm_kernel(const float* x, int64_t rows, int64_t n, const float* weight, float epsilon,
                                float* y) {
  let_next_begin();
  wait_for_previous();
  const int64_t row = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kWarp;
  if (row >= rows) return;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const float* in = x + row * n;
  float squares = 0;
  for (int64_t i = lane; i < n; i += kWarp) squares = fmaf(in[i], in[i], squares);
  const float factor = 1.0f / sqrtf(warp_sum(squares) / static_cast<float>(n) + epsilon);
  for (int64_t i = lane; i < n; i += kWarp) y[row * n + i] = in[i] * factor * weight[i];
}

// A block a row, for long rows: which of the two it is depends on n alone.
__global__ void __launch_bounds__(kThreads)
    long_rms_norm_kernel(const float* x, int64_t n, const float* weight, float epsilon, float* y) {
  __shared__ float sums[kThreads / kWarp];
  let_next_begin();
  wait_for_previous();
  const float* in = x + static_cast<int64_t>(blockIdx.x) * n;
  float* out = y + static_cast<int64_t>(blockIdx.x) * n;
  float squares = 0;
  for (int64_t i = threadIdx.x; i < n; i += kThreads) squares = fmaf(in[i], in[i], squares);
  squares = warp_sum(squares);
  if (threadIdx.x % kWarp == 0) sums[threadIdx.x / kWarp] = squares;
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int w = 0; w < kThreads / kWarp; ++w) sum += sums[w];
  const float factor = 1.0f / sqrtf(sum / static_cast<float>(n) + epsilon);
  for (int64_t i = threadIdx.x; i < n; i += kThreads) out[i] = in[i] * factor * weight[i];
}

__global__ void add_kernel(float* x, const float* y, int64_t n) {
  let_next_begin();
  wait_for_previous();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) x[i] += y[i];
}

__global__ void add_gated_kernel(float* x, const float* y, const float* gate, int64_t values, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < values) x[i] += 1.0f / (1.0f + expf(-gate[i / n])) * y[i];
}

__global__ void silu_kernel(const float* gate, const float* up, int64_t n, float* y) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) y[i] = gate[i] / (1.0f + expf(-gate[i])) * up[i];
}

}  // namespace

void rms_norm(const CudaContext& cuda, const float* x, int64_t rows, int64_t n, const float* weight,
              float epsilon, float* y) {
  if (rows == 0) return;
  if (n >= kLongRow) {
    launch_behind(cuda, long_rms_norm_kernel, static_cast<unsigned>(rows), kThreads, x, n, weight, epsilon,
                  y);
    return;
  }
  launch_behind(cuda, rms_norm_kernel, blocks_for(rows, kThreads / kWarp), kThreads, x, rows, n, weight,
                epsilon, y);
}

void add(const CudaContext& cuda, float* x, const float* y, int64_t n) {
  if (n > 0) launch_behind(cuda, add_kernel, blocks_for(n, kThreads), kThreads, x, y, n);
}

void add_gated(const CudaContext& cuda, float* x, const float* y, const float* gate, int64_t rows,
               int64_t n) {
  const int64_t values = rows * n;
  if (values == 0) return;
  add_gated_kernel<<<blocks_for(values, kThreads), kThreads, 0, cuda.stream>>>(x, y, gate, values, n);
}

void silu_and_multiply(const CudaContext& cuda, const float* gate, const float* up, int64_t n, float* y) {
  if (n > 0) silu_kernel<<<blocks_for(n, kThreads), kThreads, 0, cuda.stream>>>(gate, up, n, y);
}

}  // namespace sluice::cuda
