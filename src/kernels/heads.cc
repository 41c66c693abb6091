// Heads on their way into the cache.
#include "kernels/heads.h"

#include "base/error.h"
#include "kernels/cuda/ops.h"
#include "kernels/norm.h"
#include "kernels/rope.h"

namespace sluice {
namespace {

void one_by_one(Stream& stream, const Heads& h, const Positions& positions, const KvLayer& cache) {
  const int64_t dim = cache.head_dim;
  if (h.q_norm != nullptr) rms_norm(stream, h.q, h.rows * h.heads, dim, h.q_norm, h.epsilon, h.q);
  if (h.k_norm != nullptr) rms_norm(stream, h.k, h.rows * cache.kv_heads, dim, h.k_norm, h.epsilon, h.k);
  rope(stream, h.q, h.rows, h.heads, dim, h.cos, h.sin, h.half);
  rope(stream, h.k, h.rows, cache.kv_heads, dim, h.cos, h.sin, h.half);
  kv_store(stream, h.k, h.v, h.rows, positions, cache);
}

}  // namespace

void heads_to_cache(Stream& stream, const Heads& heads, const Positions& positions, const KvLayer& cache) {
  if (stream.backend() == Backend::kHost) return one_by_one(stream, heads, positions, cache);
  SLUICE_CHECK(2 * heads.half <= cache.head_dim);
  SLUICE_CHECK(positions.first >= 0 && positions.first + heads.rows <= cache.capacity);
  const int64_t of_k = heads.rows * cache.kv_heads * cache.head_dim;
  stream.launch_both(
      {.name = "heads_to_cache",
       .reads = {range_of(heads.k, of_k), range_of(heads.v, of_k)},
       .writes = {range_of(heads.q, heads.rows * heads.heads * cache.head_dim)}},
      [](const HostContext&) {}, SLUICE_CUDA_OP(cuda::heads_to_cache, heads, positions, cache));
}

}  // namespace sluice
