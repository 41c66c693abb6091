// Sorts the pairs of rows and experts by expert, by counting: one block.
#include "base/error.h"
#include "kernels/cuda/tensor_products.cuh"

namespace sluice::cuda {
namespace {

constexpr int kThreads = 1024;

/// The sum of `value` over the threads before this one; `total`: over all. All threads of the block.
__device__ int sum_before(int value, int* of_warps, int& total) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  int sum = value;
#pragma unroll
  for (int step = 1; step < kWarp; step *= 2) {
    const int other = __shfl_up_sync(~0u, sum, step);
    if (lane >= step) sum += other;
  }
  __syncthreads();  // what the last call left has been read
  if (lane == kWarp - 1) of_warps[warp] = sum;
  __syncthreads();
  int before = 0;
  total = 0;
  for (int i = 0; i < kThreads / kWarp; ++i) {
    if (i < warp) before += of_warps[i];
    total += of_warps[i];
  }
  return before + sum - value;
}

__global__ void __launch_bounds__(kThreads)
    list_kernel(const ExpertCall call, const PairLists lists, int tile_rows) {
  extern __shared__ int
      next[];  // of each expert in the call's range: its count, then the place of its next pair
  __shared__ int of_warps[kThreads / kWarp];
  let_next_begin();
  wait_for_previous();
  const int experts = call.last - call.first, pairs = static_cast<int>(call.routes.rows * call.routes.k);
  const int thread = static_cast<int>(threadIdx.x);
  const auto local = [&](int pair) {
    const int32_t id = call.routes.ids[pair];
    return id >= call.first && id < call.last && call.experts.row_of[id] >= 0 ? id - call.first : -1;
  };
  for (int e = thread; e < experts; e += kThreads) next[e] = 0;
  __syncthreads();
  for (int i = thread; i < pairs; i += kThreads) {
    const int e = local(i);
    if (e >= 0) atomicAdd(&next[e], 1);
  }
  __syncthreads();
  int pairs_before = 0, tiles_before = 0;
  for (int begin = 0; begin < experts; begin += kThreads) {
    const int e = begin + thread, count = e < experts ? next[e] : 0;
    const int tiles = (count + tile_rows - 1) / tile_rows;
    int all_pairs, all_tiles;
    const int first = pairs_before + sum_before(count, of_warps, all_pairs);
    const int tile = tiles_before + sum_before(tiles, of_warps, all_tiles);
    for (int t = 0; t < tiles; ++t) {
      lists.first[tile + t] = first + t * tile_rows;
      lists.count[tile + t] = min(tile_rows, count - t * tile_rows);
      lists.expert[tile + t] = e + call.first;
    }
    if (e < experts) next[e] = first;
    pairs_before += all_pairs;
    tiles_before += all_tiles;
  }
  if (thread == 0) *lists.tiles = tiles_before;
  __syncthreads();
  // Which of an expert's pairs comes first does not change what any of them gives.
  for (int i = thread; i < pairs; i += kThreads) {
    const int e = local(i);
    if (e >= 0) lists.pairs[atomicAdd(&next[e], 1)] = i;
  }
}

}  // namespace

void list_pairs(const CudaContext& cuda, const ExpertCall& call, const PairLists& lists, int tile_rows) {
  const auto experts = static_cast<size_t>(call.last - call.first);
  SLUICE_CHECK_MSG(experts * sizeof(int) <= 40 * 1024, "more than 10240 experts a layer");
  launch_with_shared(cuda, list_kernel, dim3(1), kThreads, experts * sizeof(int), call, lists, tile_rows);
}

}  // namespace sluice::cuda
