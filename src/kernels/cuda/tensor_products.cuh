// Products of many rows, on tensor cores. Each format's kernels are a file of their own (tensor_*.cu).
#pragma once

#include "device/stream.h"
#include "kernels/cuda/expert_view.cuh"
#include "kernels/cuda/parts.cuh"
#include "kernels/cuda/prompt_attention.h"

namespace sluice::cuda {

/// The pairs (row, rank) of a call's routes, expert by expert, cut into tiles of up to `tile_rows` pairs.
struct PairLists {
  int32_t* tiles;   // [1]: how many there are
  int32_t* first;   // [most_tiles]: where a tile's pairs begin in `pairs`
  int32_t* count;   // [most_tiles]
  int32_t* expert;  // [most_tiles]
  int32_t* pairs;   // [pairs]: row * k + rank
  int64_t most_tiles;

  static constexpr int64_t kLeastTileRows = 16;
  static constexpr int64_t tiles_for(int64_t pairs, int64_t experts, int64_t tile_rows) {
    return (pairs < experts ? pairs : experts) + pairs / tile_rows;
  }
  static constexpr size_t bytes(int64_t pairs, int64_t experts) {
    return static_cast<size_t>(4 + 3 * tiles_for(pairs, experts, kLeastTileRows) + pairs) * sizeof(int32_t);
  }
  PairLists(void* memory, int64_t pairs_of_call, int64_t experts, int64_t tile_rows)
      : most_tiles(tiles_for(pairs_of_call, experts, tile_rows)) {
    tiles = static_cast<int32_t*>(memory);
    first = tiles + 4;
    count = first + most_tiles;
    expert = count + most_tiles;
    pairs = expert + most_tiles;
  }
};

/// A call of expert_products.
struct ExpertCall {
  const float* x;
  ExpertRoutes routes;
  ExpertView experts;
  int64_t expert_count;
  int32_t first, last;
  float *activations, *outputs;
};

template <WeightFormat kFormat>
struct TensorProducts {
  /// Parts [first, last), all of this format.
  static void linear(const CudaContext& cuda, const float* x, int64_t rows, const LinearPart* first,
                     const LinearPart* last);
  static void experts(const CudaContext& cuda, const ExpertCall& call);
};

/// Fills `lists` on the device: pairs of the experts in [call.first, call.last) that have a row.
void list_pairs(const CudaContext& cuda, const ExpertCall& call, const PairLists& lists, int tile_rows);

}  // namespace sluice::cuda
