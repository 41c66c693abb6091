// Several products of the same activations in one launch, as kernels take them.
#pragma once

#include "kernels/cuda/weights.cuh"
#include "kernels/linear.h"

namespace sluice::cuda {

/// A part. Its blocks are [first_block, first_block of the next one).
struct PartView {
  WeightView w, up;
  const float *bias, *gate;
  float* y;
  int64_t n;
  bool gated, add;
  int first_block;
};
struct PartViews {
  PartView parts[kMostParts];
  int count = 0, blocks = 0;

  /// Appends a part whose blocks take `columns` columns each, or `gated_columns` of both its matrices.
  void append(const LinearPart& part, int columns, int gated_columns) {
    const bool gated = part.up.data != nullptr;
    parts[count++] = {view_of(part.w), view_of(part.up), part.bias, part.gate, part.y, part.w.n,
                      gated,           part.add,         blocks};
    blocks += static_cast<int>(ceil_div(part.w.n, gated ? gated_columns : columns));
  }
  __device__ const PartView& of_block(int block) const {
    int which = 0;
    while (which + 1 < count && block >= parts[which + 1].first_block) ++which;
    return parts[which];
  }
};

/// Writes one output of a part.
__device__ inline void finish(const PartView& part, int64_t row, int64_t column, float value) {
  if (part.bias != nullptr) value += part.bias[column];
  float& y = part.y[row * part.n + column];
  if (!part.add) {
    y = value;
  } else {
    y += (part.gate == nullptr ? 1.0f : 1.0f / (1.0f + expf(-part.gate[row]))) * value;
  }
}

__device__ inline float silu_times(float gate, float up) { return gate / (1.0f + expf(-gate)) * up; }

}  // namespace sluice::cuda
