// Causal attention with grouped queries over a KV cache. Ainslie et al., "GQA", 2023.
#pragma once

#include "device/stream.h"

namespace sluice {

/// Keys and values of one layer of one sequence: [kv_heads, capacity, head_dim] each.
struct KvLayer {
  float* keys = nullptr;
  float* values = nullptr;
  int64_t kv_heads = 0, capacity = 0, head_dim = 0;

  constexpr int64_t offset(int64_t head, int64_t position) const {
    return (head * capacity + position) * head_dim;
  }
  int64_t elements() const { return kv_heads * capacity * head_dim; }
};

/// Stores k and v [rows, kv_heads, head_dim] at positions first_position ... first_position + rows - 1.
void kv_store(Stream& stream, const float* k, const float* v, int64_t rows, int64_t first_position,
              const KvLayer& cache);

/// y[r, h, :] = softmax(scale * q[r, h, :] . keys) . values over positions 0 ... first_position + r.
/// q and y [rows, heads, head_dim]; heads is a multiple of the cache's kv_heads. The arithmetic of a row
/// depends on its position alone, not on the other rows of the call.
void attention(Stream& stream, const float* q, int64_t rows, int64_t heads, int64_t first_position,
               float scale, const KvLayer& cache, float* y);

}  // namespace sluice
