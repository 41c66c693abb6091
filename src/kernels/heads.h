// What becomes of queries, keys and values between their products and attention.
#pragma once

#include "device/stream.h"
#include "kernels/attention.h"
#include "kernels/positions.h"

namespace sluice {

struct Heads {
  float* q = nullptr;        // [rows, heads, head_dim]
  float* k = nullptr;        // [rows, kv_heads, head_dim]; undefined afterwards
  const float* v = nullptr;  // [rows, kv_heads, head_dim]
  int64_t rows = 0, heads = 0;
  const float* q_norm = nullptr;  // [head_dim], of each head, or null
  const float* k_norm = nullptr;
  float epsilon = 0;
  const float* cos = nullptr;  // [rows, half]
  const float* sin = nullptr;
  int64_t half = 0;  // rope()
};

/// Normalises each head of q and k where there are weights, rotates them, and stores k and v in the cache: as
/// rms_norm(), rope() and kv_store() would one after the other, on a GPU in one launch. Heads of a GPU are at
/// most 256 wide.
void heads_to_cache(Stream& stream, const Heads& heads, const Positions& positions, const KvLayer& cache);

}  // namespace sluice
