// Matrix products of activations with weights: a warp for each output column and group of rows.
#include "kernels/cuda/ops.h"
#include "kernels/cuda/products.cuh"

namespace sluice::cuda {
namespace {

constexpr int kRows = 4;           // rows of x that share a read of the weight row
constexpr int kWarpsPerBlock = 8;  // columns

template <class Decode>
__global__ void linear_kernel(const float* x, int64_t rows, WeightView w, int64_t n, const float* bias,
                              float* y) {
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kWarpsPerBlock + threadIdx.x / kWarp;
  if (column >= n) return;
  const int64_t first = static_cast<int64_t>(blockIdx.y) * kRows;
  const float* in[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) in[i] = first + i < rows ? x + (first + i) * w.k : nullptr;
  float sums[kRows];
  warp_dots<Decode, kRows>(w, column, in, sums);
  if (threadIdx.x % kWarp != 0) return;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    if (first + i < rows) y[(first + i) * n + column] = bias == nullptr ? sums[i] : sums[i] + bias[column];
  }
}

template <class Decode>
__global__ void embedding_kernel(const int32_t* ids, WeightView w, float* y) {
  const int64_t row = blockIdx.x;
  for (int64_t c = threadIdx.x; c * kChunk < w.k; c += blockDim.x) {
    const int count = static_cast<int>(min(static_cast<int64_t>(kChunk), w.k - c * kChunk));
    float values[kChunk];
    Decode::chunk(w, ids[row], c, count, values);
    for (int i = 0; i < count; ++i) y[row * w.k + c * kChunk + i] = values[i];
  }
}

__global__ void split_kernel(const float* x, int64_t n, float* left, float* right) {
  const int64_t row = blockIdx.x;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    left[row * n + i] = x[row * 2 * n + i];
    right[row * n + i] = x[row * 2 * n + n + i];
  }
}

}  // namespace

void linear(const CudaContext& cuda, const float* x, int64_t rows, const Matrix& w, const float* bias,
            float* y) {
  if (rows == 0) return;
  const dim3 grid(blocks_for(w.n, kWarpsPerBlock), blocks_for(rows, kRows));
  with_decoder(w.format, [&]<class Decode>(Decode) {
    linear_kernel<Decode>
        <<<grid, kWarpsPerBlock * kWarp, 0, cuda.stream>>>(x, rows, view_of(w), w.n, bias, y);
  });
}

void embedding(const CudaContext& cuda, const int32_t* ids, int64_t rows, const Matrix& table, float* y) {
  if (rows == 0) return;
  with_decoder(table.format, [&]<class Decode>(Decode) {
    WeightView view = view_of(table);
    view.bf16 = false;  // rows are copied, not multiplied
    embedding_kernel<Decode><<<static_cast<unsigned>(rows), 128, 0, cuda.stream>>>(ids, view, y);
  });
}

void split_columns(const CudaContext& cuda, const float* x, int64_t rows, int64_t n, float* left,
                   float* right) {
  if (rows == 0) return;
  split_kernel<<<static_cast<unsigned>(rows), 256, 0, cuda.stream>>>(x, n, left, right);
}

}  // namespace sluice::cuda
