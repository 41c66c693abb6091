// A layer's experts as kernels find them.
#pragma once

#include "kernels/cuda/weights.cuh"
#include "kernels/experts.h"

namespace sluice::cuda {

/// An expert's row and scalars.
struct ExpertView {
  RowLayout layout;
  const std::byte* rows;
  const int32_t* row_of;
  const float* scalars;
  bool bf16;
};
inline ExpertView view_of(const ExpertRows& experts) {
  return {experts.layout, experts.rows, experts.row_of, experts.scalars, experts.compute == Compute::kBf16};
}

/// matrix: 0 gate, 1 up, 2 down.
__device__ inline WeightView matrix_of(const ExpertView& experts, int32_t expert, int matrix) {
  const RowLayout& layout = experts.layout;
  const std::byte* row = experts.rows + static_cast<size_t>(experts.row_of[expert]) * layout.row_bytes;
  const bool down = matrix == 2;
  const RowLayout::Part& numbers = down ? layout.down : layout.gate_up;
  const RowLayout::Part& scales = down ? layout.down_scale : layout.gate_up_scale;
  const size_t half = matrix == 1 ? 1 : 0;
  const std::byte* data = row + numbers.offset + half * numbers.bytes / 2;
  const int64_t k = down ? layout.intermediate : layout.hidden;
  return {data,
          row + scales.offset + half * scales.bytes / 2,
          experts.scalars[expert * kScalarsPerExpert + matrix],
          k,
          experts.bf16,
          is_aligned(data, k)};
}

}  // namespace sluice::cuda
