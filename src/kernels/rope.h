// Rotary position embedding. Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding",
// 2021.
#pragma once

#include "device/stream.h"
#include "kernels/positions.h"

namespace sluice {

/// Fills cos and sin [rows, half] with the angles position * frequency[i].
/// frequencies [half], f32 as the families' reference computes them. Once a step, for all layers.
void rope_table(Stream& stream, const Positions& positions, int64_t rows, const float* frequencies,
                int64_t half, float* cos, float* sin);

/// Rotates the first 2 * half elements of every head in place, pairing element i with i + half (the NeoX
/// order). x [rows, heads, head_dim].
void rope(Stream& stream, float* x, int64_t rows, int64_t heads, int64_t head_dim, const float* cos,
          const float* sin, int64_t half);

}  // namespace sluice
