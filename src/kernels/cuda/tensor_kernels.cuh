// The kernels of TensorProducts and their launches, for the one format that a file instantiates.
#pragma once

#include "base/error.h"
#include "kernels/cuda/tensor_products.cuh"
#include "kernels/cuda/tensor_strip.cuh"
#include "kernels/cuda/tensor_tile.cuh"

namespace sluice::cuda {

/// Tiles of 128 rows, and how many columns of a matrix (of each of two) a block takes.
template <WeightFormat kFormat>
struct ManyRows {
  static constexpr int kRows = 128, kThreads = kTileThreads;
  static constexpr int kLeastBlocks = 1;  // of a multiprocessor
  static constexpr int columns(bool gated) { return tile_columns(gated); }
  template <class Value, bool kGated>
  using Tile = TensorTile<kFormat, Value, kRows, kGated>;
};

/// Strips for 16 or 32 rows.
template <WeightFormat kFormat, int kRowTiles, int kWarps>
struct FewRows {
  static constexpr int kRows = 16 * kRowTiles, kThreads = kWarps * kWarp;
  static constexpr int kLeastBlocks = 16 / kWarps;
  static constexpr int columns(bool) { return 8 * kWarps; }
  template <class Value, bool kGated>
  using Tile = TensorStrip<kFormat, Value, kRowTiles, kWarps, kGated>;
};

/// Rows of activations of a tile, in shared memory.
template <class Value, int kRows>
struct TileRows {
  const Value* rows[kRows];
};

template <class Way, bool kGated>
__device__ void linear_tile(const float* x, int64_t rows, const PartView& part, uint4* shared,
                            TileRows<float, Way::kRows>& tile_rows) {
  const int64_t first = static_cast<int64_t>(blockIdx.y) * Way::kRows, k = part.w.k;
  for (int r = static_cast<int>(threadIdx.x); r < Way::kRows; r += Way::kThreads) {
    tile_rows.rows[r] = first + r < rows ? x + (first + r) * k : nullptr;
  }
  __syncthreads();
  const WeightView both[2] = {part.w, kGated ? part.up : part.w};
  const int64_t column = (static_cast<int64_t>(blockIdx.x) - part.first_block) * Way::columns(kGated);
  typename Way::template Tile<float, kGated> tile(
      shared, tile_rows.rows, static_cast<int>(min(rows - first, static_cast<int64_t>(Way::kRows))), both,
      column, part.n);
  tile.multiply(both, [] { wait_for_previous(); });  // weights never change
  tile.give(both, [&](int row, int64_t at, float value, float up) {
    if (first + row < rows) finish(part, first + row, at, kGated ? silu_times(value, up) : value);
  });
}

template <class Way>
__global__ void __launch_bounds__(Way::kThreads, Way::kLeastBlocks)
    tensor_linear_kernel(const float* x, int64_t rows, const __grid_constant__ PartViews views) {
  extern __shared__ uint4 shared[];
  __shared__ TileRows<float, Way::kRows> tile_rows;
  let_next_begin();
  const PartView& part = views.of_block(static_cast<int>(blockIdx.x));
  part.gated ? linear_tile<Way, true>(x, rows, part, shared, tile_rows)
             : linear_tile<Way, false>(x, rows, part, shared, tile_rows);
}

/// A block's tile of pairs.
template <class Value, int kRows>
struct PairTile {
  TileRows<Value, kRows> rows;
  int32_t pairs[kRows];

  /// How many pairs it has: 0 where there is no such tile. `row_of_pair(pair)`: its row of activations.
  template <class RowOfPair>
  __device__ int load(const PairLists& lists, int tile, RowOfPair&& row_of_pair) {
    if (tile >= *lists.tiles) return 0;
    const int first = lists.first[tile], count = lists.count[tile];
    for (int r = static_cast<int>(threadIdx.x); r < kRows; r += static_cast<int>(blockDim.x)) {
      pairs[r] = r < count ? lists.pairs[first + r] : -1;
      rows.rows[r] = r < count ? row_of_pair(pairs[r]) : nullptr;
    }
    __syncthreads();
    return count;
  }
};

template <class Way>
__global__ void __launch_bounds__(Way::kThreads, Way::kLeastBlocks)
    tensor_gate_up_kernel(const __grid_constant__ ExpertCall call, const PairLists lists,
                          __nv_bfloat16* activations) {
  extern __shared__ uint4 shared[];
  __shared__ PairTile<float, Way::kRows> pairs;
  let_next_begin();
  wait_for_previous();
  const int64_t hidden = call.experts.layout.hidden, inner = call.experts.layout.intermediate;
  const int where = static_cast<int>(blockIdx.y);
  const int count =
      pairs.load(lists, where, [&](int pair) { return call.x + pair / call.routes.k * hidden; });
  if (count == 0) return;
  const int32_t expert = lists.expert[where];
  const WeightView both[2] = {matrix_of(call.experts, expert, 0), matrix_of(call.experts, expert, 1)};
  typename Way::template Tile<float, true> tile(shared, pairs.rows.rows, count, both,
                                                static_cast<int64_t>(blockIdx.x) * Way::columns(true), inner);
  tile.multiply(both, [] {});
  tile.give(both, [&](int row, int64_t column, float gate, float up) {
    if (pairs.pairs[row] < 0) return;
    activations[pairs.pairs[row] * inner + column] = __float2bfloat16_rn(silu_times(gate, up));
  });
}

template <class Way>
__global__ void __launch_bounds__(Way::kThreads, Way::kLeastBlocks)
    tensor_down_kernel(const __grid_constant__ ExpertCall call, const PairLists lists,
                       const __nv_bfloat16* activations) {
  extern __shared__ uint4 shared[];
  __shared__ PairTile<__nv_bfloat16, Way::kRows> pairs;
  let_next_begin();
  wait_for_previous();
  const int64_t hidden = call.experts.layout.hidden, inner = call.experts.layout.intermediate;
  const int where = static_cast<int>(blockIdx.y);
  const int count = pairs.load(lists, where, [&](int pair) { return activations + pair * inner; });
  if (count == 0) return;
  const WeightView down = matrix_of(call.experts, lists.expert[where], 2);
  const WeightView both[2] = {down, down};
  typename Way::template Tile<__nv_bfloat16, false> tile(
      shared, pairs.rows.rows, count, both, static_cast<int64_t>(blockIdx.x) * Way::columns(false), hidden);
  tile.multiply(both, [] {});
  tile.give(both, [&](int row, int64_t column, float value, float) {
    if (pairs.pairs[row] >= 0) call.outputs[pairs.pairs[row] * hidden + column] = value;
  });
}

template <class Way>
void launch_linear(const CudaContext& cuda, const float* x, int64_t rows, const LinearPart* first,
                   const LinearPart* last) {
  PartViews views{};
  for (const LinearPart* part = first; part != last; ++part) {
    views.append(*part, Way::columns(false), Way::columns(true));
  }
  using Tile = typename Way::template Tile<float, false>;
  const dim3 grid(static_cast<unsigned>(views.blocks), blocks_for(rows, Way::kRows));
  launch_with_shared(cuda, tensor_linear_kernel<Way>, grid, Way::kThreads, Tile::kSharedBytes, x, rows,
                     views);
}

template <class Way>
void launch_experts(const CudaContext& cuda, const ExpertCall& call) {
  const int64_t pairs = call.routes.rows * call.routes.k;
  const int64_t hidden = call.experts.layout.hidden, inner = call.experts.layout.intermediate;
  auto* activations = reinterpret_cast<__nv_bfloat16*>(call.activations);
  const PairLists lists(activations + pairs * inner, pairs, call.last - call.first, Way::kRows);
  SLUICE_CHECK_MSG(lists.most_tiles <= 65535, "more tiles of experts than a grid has rows");
  list_pairs(cuda, call, lists, Way::kRows);
  const auto tiles = static_cast<unsigned>(lists.most_tiles);
  using Inner = typename Way::template Tile<float, true>;
  using Outer = typename Way::template Tile<__nv_bfloat16, false>;
  launch_with_shared(cuda, tensor_gate_up_kernel<Way>, dim3(blocks_for(inner, Way::columns(true)), tiles),
                     Way::kThreads, Inner::kSharedBytes, call, lists, activations);
  launch_with_shared(cuda, tensor_down_kernel<Way>, dim3(blocks_for(hidden, Way::columns(false)), tiles),
                     Way::kThreads, Outer::kSharedBytes, call, lists, activations);
}

template <WeightFormat kFormat>
void TensorProducts<kFormat>::linear(const CudaContext& cuda, const float* x, int64_t rows,
                                     const LinearPart* first, const LinearPart* last) {
  constexpr int64_t kMany = 160;  // where a strip's reads of activations cost more than waiting for weights
  rows < kMany ? launch_linear<FewRows<kFormat, 2, 8>>(cuda, x, rows, first, last)
               : launch_linear<ManyRows<kFormat>>(cuda, x, rows, first, last);
}

template <WeightFormat kFormat>
void TensorProducts<kFormat>::experts(const CudaContext& cuda, const ExpertCall& call) {
  // By the mean of pairs an expert, which shapes alone tell.
  const int64_t mean = call.routes.rows * call.routes.k / call.expert_count;
  if (mean < 8) return launch_experts<FewRows<kFormat, 1, 8>>(cuda, call);
  if (mean < 64) return launch_experts<FewRows<kFormat, 2, 8>>(cuda, call);
  launch_experts<ManyRows<kFormat>>(cuda, call);
}

}  // namespace sluice::cuda
