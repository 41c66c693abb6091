// The grouped products of routed experts, read where they lie: a slot per expert.
#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "kernels/cuda/expert_view.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/parts.cuh"
#include "kernels/cuda/products.cuh"
#include "kernels/cuda/tensor_products.cuh"

namespace sluice::cuda {
namespace {

constexpr int kWarps = 4;        // of a block
constexpr int kManyPairs = 4;    // of one expert that share a read of a weight row, where rows are many
constexpr int kDownColumns = 4;  // of a warp

/// Pairs (row, rank) of a layer's routes that one block works on: all of one expert.
template <int kPairs>
struct Group {
  int32_t expert;
  int64_t pairs[kPairs];  // -1: none
};

// Block (x, y): y-th pair, if it is the first of its expert among groups of kPairs. Pairs of an expert are
// found by counting through the ids before it, which is cheap beside reading a weight row and needs no memory
// between launches.
template <int kPairs>
__device__ bool group_of(const ExpertRoutes& routes, const ExpertView& experts, int32_t low, int32_t high,
                         Group<kPairs>& group) {
  const int64_t pairs = routes.rows * routes.k, own = blockIdx.y;
  const int32_t expert = routes.ids[own];
  if (expert < low || expert >= high || experts.row_of[expert] < 0) return false;
  group.expert = expert;
  if (kPairs == 1) {
    group.pairs[0] = own;
    return true;
  }
  __shared__ int before;
  if (threadIdx.x == 0) before = 0;
  __syncthreads();
  int count = 0;
  for (int64_t i = threadIdx.x; i < own; i += blockDim.x) count += routes.ids[i] == expert;
  if (count > 0) atomicAdd(&before, count);
  __syncthreads();
  if (before % kPairs != 0) return false;  // another block has this pair
  int found = 0;
#pragma unroll
  for (int i = 0; i < kPairs; ++i) group.pairs[i] = -1;
  for (int64_t i = own; i < pairs && found < kPairs; ++i) {
    if (routes.ids[i] == expert) group.pairs[found++] = i;
  }
  return true;
}

template <class Decode, int kPairs>
__global__ void __launch_bounds__(kWarps* kWarp)
    gate_up_kernel(const float* x, ExpertRoutes routes, ExpertView experts, int32_t low, int32_t high,
                   float* activations) {
  __shared__ ActivationTile<kPairs> tile;
  let_next_begin();
  wait_for_previous();
  Group<kPairs> group;
  if (!group_of(routes, experts, low, high, group)) return;
  const int64_t inner = experts.layout.intermediate, hidden = experts.layout.hidden;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  const float* in[kPairs];
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    in[i] = group.pairs[i] < 0 ? nullptr : x + group.pairs[i] / routes.k * hidden;
  }
  const WeightView both[2] = {matrix_of(experts, group.expert, 0), matrix_of(experts, group.expert, 1)};
  const int64_t at[2] = {column, column};
  float sums[2][kPairs];
  block_dots<Decode>(tile, in, both, at, column < inner, sums, [] {});
  if (column >= inner || threadIdx.x % kWarp != 0) return;
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    if (group.pairs[i] < 0) continue;
    activations[group.pairs[i] * inner + column] = silu_times(sums[0][i], sums[1][i]);
  }
}

template <class Decode, int kPairs>
__global__ void __launch_bounds__(kWarps* kWarp)
    down_kernel(ExpertRoutes routes, ExpertView experts, int32_t low, int32_t high, const float* activations,
                float* outputs) {
  __shared__ ActivationTile<kPairs> tile;
  let_next_begin();
  wait_for_previous();
  Group<kPairs> group;
  if (!group_of(routes, experts, low, high, group)) return;
  const int64_t inner = experts.layout.intermediate, hidden = experts.layout.hidden;
  const int64_t column = (static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp) * kDownColumns;
  const float* in[kPairs];
#pragma unroll
  for (int i = 0; i < kPairs; ++i)
    in[i] = group.pairs[i] < 0 ? nullptr : activations + group.pairs[i] * inner;
  const WeightView down = matrix_of(experts, group.expert, 2);
  const WeightView all[kDownColumns] = {down, down, down, down};
  int64_t at[kDownColumns];
#pragma unroll
  for (int col = 0; col < kDownColumns; ++col) at[col] = min(column + col, hidden - 1);
  float sums[kDownColumns][kPairs];
  block_dots<Decode>(tile, in, all, at, column < hidden, sums, [] {});
  if (threadIdx.x % kWarp != 0) return;
#pragma unroll
  for (int col = 0; col < kDownColumns; ++col) {
    if (column + col >= hidden) return;
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      if (group.pairs[i] >= 0) outputs[group.pairs[i] * hidden + column + col] = sums[col][i];
    }
  }
}

__global__ void sums_kernel(const float* outputs, ExpertRoutes routes, int64_t hidden, float* y) {
  let_next_begin();
  wait_for_previous();
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

namespace {

// The scratch holds the activations in bf16, and behind them the lists of pairs.
bool expert_products_use_tensor_cores(const ExpertRoutes& routes, const ExpertRows& experts) {
  const int64_t pairs = routes.rows * routes.k, inner = experts.layout.intermediate;
  const RowLayout& layout = experts.layout;
  const size_t steps[] = {layout.row_bytes, layout.gate_up.offset, layout.gate_up.bytes / 2,
                          layout.down.offset};
  const bool aligned = inner % (2 * kChunk) == 0 && layout.hidden % (2 * kChunk) == 0 &&
                       std::all_of(std::begin(steps), std::end(steps), [](size_t n) { return n % 16 == 0; });
  return routes.rows >= kTensorRows && experts.compute == Compute::kBf16 && aligned &&
         PairLists::bytes(pairs, experts.experts) <= static_cast<size_t>(pairs * inner * 2);
}

}  // namespace

void expert_products(const CudaContext& cuda, const float* x, const ExpertRoutes& routes,
                     const ExpertRows& experts, int32_t first, int32_t last, float* activations,
                     float* outputs) {
  const int64_t pairs = routes.rows * routes.k;
  if (pairs == 0) return;
  const ExpertView view = view_of(experts);
  if (expert_products_use_tensor_cores(routes, experts)) {
    return with_decoder(experts.layout.format, [&]<WeightFormat kFormat>(Decoder<kFormat>) {
      TensorProducts<kFormat>::experts(cuda,
                                       {x, routes, view, experts.experts, first, last, activations, outputs});
    });
  }
  SLUICE_CHECK_MSG(pairs <= 65535, "more pairs of rows and experts than a grid has rows");
  const auto y = static_cast<unsigned>(pairs);
  const dim3 inner_grid(blocks_for(experts.layout.intermediate, kWarps), y);
  const dim3 hidden_grid(blocks_for(experts.layout.hidden, kWarps * kDownColumns), y);
  with_decoder(experts.layout.format, [&]<class Decode>(Decode) {
    const auto launch = [&](auto gate_up, auto down) {
      launch_behind(cuda, gate_up, inner_grid, kWarps * kWarp, x, routes, view, first, last, activations);
      launch_behind(cuda, down, hidden_grid, kWarps * kWarp, routes, view, first, last, activations, outputs);
    };
    // A row's experts differ, so pairs of one row share nothing.
    routes.rows == 1 ? launch(gate_up_kernel<Decode, 1>, down_kernel<Decode, 1>)
                     : launch(gate_up_kernel<Decode, kManyPairs>, down_kernel<Decode, kManyPairs>);
  });
}

void expert_sums(const CudaContext& cuda, const float* outputs, const ExpertRoutes& routes, int64_t hidden,
                 float* y) {
  if (routes.rows == 0) return;
  const dim3 grid(blocks_for(hidden, 256), static_cast<unsigned>(routes.rows));
  launch_behind(cuda, sums_kernel, grid, 256, outputs, routes, hidden, y);
}

}  // namespace sluice::cuda
