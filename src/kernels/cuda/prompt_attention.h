// Attention of a prompt's rows on tensor cores.
#pragma once

#include "device/stream.h"
#include "kernels/attention.h"

namespace sluice::cuda {

/// From so many rows on products in bf16 run on tensor cores: their sums are made in another order than those
/// of fewer rows.
inline constexpr int64_t kTensorRows = 16;

/// Whether these rows go this way: from kTensorRows on, over a cache in bf16 with heads of 64, 128 or 256.
bool prompt_attention_fits(int64_t rows, const KvLayer& cache);
void prompt_attention(const CudaContext& cuda, const float* q, int64_t rows, int64_t heads,
                      const Positions& positions, float scale, const KvLayer& cache, float* y);

}  // namespace sluice::cuda
