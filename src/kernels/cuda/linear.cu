// Matrix products of activations with weights: a warp for each output column and group of rows.
#include "kernels/cuda/ops.h"
#include "kernels/cuda/parts.cuh"
#include "kernels/cuda/products.cuh"
#include "kernels/cuda/tensor_products.cuh"

namespace sluice::cuda {
namespace {

constexpr int kWarps = 4;     // of a block
constexpr int kColumns = 2;   // of a warp
constexpr int kManyRows = 4;  // that share a read of a weight row, where there is more than one

// A warp takes two columns of a part, or one column of its both matrices.
template <class Decode, int kRows>
__global__ void __launch_bounds__(kWarps* kWarp)
    linear_kernel(const float* x, int64_t rows, const __grid_constant__ PartViews views) {
  __shared__ ActivationTile<kRows> tile;
  let_next_begin();
  const PartView& part = views.of_block(static_cast<int>(blockIdx.x));
  const int64_t first = static_cast<int64_t>(blockIdx.y) * kRows, k = part.w.k;
  const int64_t warp = (static_cast<int64_t>(blockIdx.x) - part.first_block) * kWarps + threadIdx.x / kWarp;
  const int64_t column = part.gated ? warp : kColumns * warp;
  const float* in[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) in[i] = first + i < rows ? x + (first + i) * k : nullptr;
  const WeightView both[kColumns] = {part.w, part.gated ? part.up : part.w};
  const int64_t at[kColumns] = {min(column, part.n - 1),
                                part.gated ? min(column, part.n - 1) : min(column + 1, part.n - 1)};
  float sums[kColumns][kRows];
  block_dots<Decode>(tile, in, both, at, column < part.n, sums, [] {
    wait_for_previous();  // weights never change
  });
  if (column >= part.n || threadIdx.x % kWarp != 0) return;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    if (first + i >= rows) continue;
    if (part.gated) {
      finish(part, first + i, column, silu_times(sums[0][i], sums[1][i]));
      continue;
    }
    finish(part, first + i, column, sums[0][i]);
    if (column + 1 < part.n) finish(part, first + i, column + 1, sums[1][i]);
  }
}

template <class Decode>
__global__ void embedding_kernel(const int32_t* ids, WeightView w, float* y) {
  const int64_t row = blockIdx.x;
  for (int64_t c = threadIdx.x; c * kChunk < w.k; c += blockDim.x) {
    const int count = static_cast<int>(min(static_cast<int64_t>(kChunk), w.k - c * kChunk));
    float values[kChunk];
    Decode::chunk(w, ids[row], c, count, values);
    const float factor = Decode::factor(w, ids[row], c);
    for (int i = 0; i < count; ++i) y[row * w.k + c * kChunk + i] = values[i] * factor;
  }
}

}  // namespace

namespace {

bool on_tensor_cores(const LinearPart& part, int64_t rows) {
  const auto allows = [](const Matrix& w) { return w.data == nullptr || is_aligned(w.data, w.k); };
  return rows >= kTensorRows && part.w.compute == Compute::kBf16 && allows(part.w) && allows(part.up);
}

}  // namespace

void linear_parts(const CudaContext& cuda, const float* x, int64_t rows, const LinearParts& parts) {
  if (rows == 0) return;
  for (const LinearPart* first = parts.begin(); first != parts.end();) {
    // Parts of one format that read x alike go together.
    const bool tensors = on_tensor_cores(*first, rows);
    PartViews views{};
    const LinearPart* part = first;
    for (; part != parts.end() && part->w.format == first->w.format && part->w.compute == first->w.compute &&
           on_tensor_cores(*part, rows) == tensors;
         ++part) {
      if (!tensors) views.append(*part, kWarps * kColumns, kWarps);
    }
    with_decoder(first->w.format, [&]<WeightFormat kFormat>(Decoder<kFormat>) {
      if (tensors) return TensorProducts<kFormat>::linear(cuda, x, rows, first, part);
      const auto launch = [&](auto kernel, int rows_of_block) {
        const dim3 grid(static_cast<unsigned>(views.blocks), blocks_for(rows, rows_of_block));
        launch_behind(cuda, kernel, grid, kWarps * kWarp, x, rows, views);
      };
      rows == 1 ? launch(linear_kernel<Decoder<kFormat>, 1>, 1)
                : launch(linear_kernel<Decoder<kFormat>, kManyRows>, kManyRows);
    });
    first = part;
  }
}

void embedding(const CudaContext& cuda, const int32_t* ids, int64_t rows, const Matrix& table, float* y) {
  if (rows == 0) return;
  with_decoder(table.format, [&]<class Decode>(Decode) {
    WeightView view = view_of(table);
    view.bf16 = false;  // rows are copied, not multiplied
    embedding_kernel<Decode><<<static_cast<unsigned>(rows), 128, 0, cuda.stream>>>(ids, view, y);
  });
}

}  // namespace sluice::cuda
