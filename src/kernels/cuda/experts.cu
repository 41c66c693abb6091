// The grouped products of routed experts, read where they lie: a slot per expert.
#include "base/error.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/products.cuh"

namespace sluice::cuda {
namespace {

constexpr int kRows = 4;           // pairs of one expert that share a read of a weight row
constexpr int kWarpsPerBlock = 8;  // columns

/// An expert's row and scalars as a kernel finds them.
struct ExpertView {
  RowLayout layout;
  const std::byte* rows;
  const int32_t* row_of;
  const float* scalars;
  bool bf16;
};

// matrix: 0 gate, 1 up, 2 down.
__device__ WeightView matrix_of(const ExpertView& experts, int32_t expert, int matrix) {
  const RowLayout& layout = experts.layout;
  const std::byte* row = experts.rows + static_cast<size_t>(experts.row_of[expert]) * layout.row_bytes;
  const bool down = matrix == 2;
  const RowLayout::Part& numbers = down ? layout.down : layout.gate_up;
  const RowLayout::Part& scales = down ? layout.down_scale : layout.gate_up_scale;
  const size_t half = matrix == 1 ? 1 : 0;
  return {row + numbers.offset + half * numbers.bytes / 2, row + scales.offset + half * scales.bytes / 2,
          experts.scalars[expert * kScalarsPerExpert + matrix], down ? layout.intermediate : layout.hidden,
          experts.bf16};
}

/// Pairs (row, rank) of a layer's routes that one block works on: all of one expert.
struct Group {
  int32_t expert;
  int64_t pairs[kRows];  // -1: none
};

// Block (x, y): y-th pair, if it is the first of its expert among groups of kRows. Pairs of an expert are
// found by counting through the ids before it, which is cheap beside reading a weight row and needs no memory
// between launches.
__device__ bool group_of(const ExpertRoutes& routes, const ExpertView& experts, int32_t low, int32_t high,
                         Group& group) {
  const int64_t pairs = routes.rows * routes.k, own = blockIdx.y;
  const int32_t expert = routes.ids[own];
  if (expert < low || expert >= high || experts.row_of[expert] < 0) return false;
  __shared__ int before;
  if (threadIdx.x == 0) before = 0;
  __syncthreads();
  int count = 0;
  for (int64_t i = threadIdx.x; i < own; i += blockDim.x) count += routes.ids[i] == expert;
  if (count > 0) atomicAdd(&before, count);
  __syncthreads();
  if (before % kRows != 0) return false;  // another block has this pair
  group.expert = expert;
  int found = 0;
#pragma unroll
  for (int i = 0; i < kRows; ++i) group.pairs[i] = -1;
  for (int64_t i = own; i < pairs && found < kRows; ++i) {
    if (routes.ids[i] == expert) group.pairs[found++] = i;
  }
  return true;
}

template <class Decode>
__global__ void gate_up_kernel(const float* x, ExpertRoutes routes, ExpertView experts, int32_t low,
                               int32_t high, float* activations) {
  Group group;
  if (!group_of(routes, experts, low, high, group)) return;
  const int64_t inner = experts.layout.intermediate, hidden = experts.layout.hidden;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kWarpsPerBlock + threadIdx.x / kWarp;
  if (column >= inner) return;
  const float* in[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i)
    in[i] = group.pairs[i] < 0 ? nullptr : x + group.pairs[i] / routes.k * hidden;
  float gate[kRows], up[kRows];
  warp_dots<Decode, kRows>(matrix_of(experts, group.expert, 0), column, in, gate);
  warp_dots<Decode, kRows>(matrix_of(experts, group.expert, 1), column, in, up);
  if (threadIdx.x % kWarp != 0) return;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    if (group.pairs[i] < 0) continue;
    activations[group.pairs[i] * inner + column] = gate[i] / (1.0f + expf(-gate[i])) * up[i];
  }
}

template <class Decode>
__global__ void down_kernel(ExpertRoutes routes, ExpertView experts, int32_t low, int32_t high,
                            const float* activations, float* outputs) {
  Group group;
  if (!group_of(routes, experts, low, high, group)) return;
  const int64_t inner = experts.layout.intermediate, hidden = experts.layout.hidden;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kWarpsPerBlock + threadIdx.x / kWarp;
  if (column >= hidden) return;
  const float* in[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) in[i] = group.pairs[i] < 0 ? nullptr : activations + group.pairs[i] * inner;
  float sums[kRows];
  warp_dots<Decode, kRows>(matrix_of(experts, group.expert, 2), column, in, sums);
  if (threadIdx.x % kWarp != 0) return;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    if (group.pairs[i] >= 0) outputs[group.pairs[i] * hidden + column] = sums[i];
  }
}

__global__ void sums_kernel(const float* outputs, ExpertRoutes routes, int64_t hidden, float* y) {
  const int64_t row = blockIdx.y;
  const int64_t j = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (j >= hidden) return;
  float sum = 0;
  for (int64_t i = row * routes.k; i < (row + 1) * routes.k; ++i) {
    if (routes.ids[i] >= 0) sum += routes.weights[i] * outputs[i * hidden + j];
  }
  y[row * hidden + j] = sum;
}

}  // namespace

void expert_products(const CudaContext& cuda, const float* x, const ExpertRoutes& routes,
                     const ExpertRows& experts, int32_t first, int32_t last, float* activations,
                     float* outputs) {
  const int64_t pairs = routes.rows * routes.k;
  if (pairs == 0) return;
  SLUICE_CHECK_MSG(pairs <= 65535, "more pairs of rows and experts than a grid has rows");
  const ExpertView view{experts.layout, experts.rows, experts.row_of, experts.scalars,
                        experts.compute == Compute::kBf16};
  const auto y = static_cast<unsigned>(pairs);
  const dim3 inner_grid(blocks_for(experts.layout.intermediate, kWarpsPerBlock), y);
  const dim3 hidden_grid(blocks_for(experts.layout.hidden, kWarpsPerBlock), y);
  with_decoder(experts.layout.format, [&]<class Decode>(Decode) {
    gate_up_kernel<Decode>
        <<<inner_grid, kWarpsPerBlock * kWarp, 0, cuda.stream>>>(x, routes, view, first, last, activations);
    down_kernel<Decode><<<hidden_grid, kWarpsPerBlock * kWarp, 0, cuda.stream>>>(routes, view, first, last,
                                                                                 activations, outputs);
  });
}

void expert_sums(const CudaContext& cuda, const float* outputs, const ExpertRoutes& routes, int64_t hidden,
                 float* y) {
  if (routes.rows == 0) return;
  const dim3 grid(blocks_for(hidden, 256), static_cast<unsigned>(routes.rows));
  sums_kernel<<<grid, 256, 0, cuda.stream>>>(outputs, routes, hidden, y);
}

}  // namespace sluice::cuda
