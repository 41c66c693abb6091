// Launchers of the CUDA kernels. Arguments and results are those of the operation of the same name in
// kernels/.
//
// As on the host, the arithmetic of a row depends on that row alone, not on the other rows of the call: sums
// are made by one warp in an order that follows from the row's length.
#pragma once

#include <cstdint>

#include "device/stream.h"
#include "kernels/attention.h"
#include "kernels/experts.h"
#include "kernels/generated_routes.h"
#include "kernels/heads.h"
#include "kernels/linear.h"
#include "kernels/matrix.h"

namespace sluice::cuda {

void rms_norm(const CudaContext& cuda, const float* x, int64_t rows, int64_t n, const float* weight,
              float epsilon, float* y);
void add(const CudaContext& cuda, float* x, const float* y, int64_t n);
void add_gated(const CudaContext& cuda, float* x, const float* y, const float* gate, int64_t rows, int64_t n);
void silu_and_multiply(const CudaContext& cuda, const float* gate, const float* up, int64_t n, float* y);
void rope_table(const CudaContext& cuda, const Positions& positions, int64_t rows, const float* frequencies,
                int64_t half, float* cos, float* sin);
void rope(const CudaContext& cuda, float* x, int64_t rows, int64_t heads, int64_t head_dim, const float* cos,
          const float* sin, int64_t half);
void linear_parts(const CudaContext& cuda, const float* x, int64_t rows, const LinearParts& parts);
void embedding(const CudaContext& cuda, const int32_t* ids, int64_t rows, const Matrix& table, float* y);
void kv_store(const CudaContext& cuda, const float* k, const float* v, int64_t rows,
              const Positions& positions, const KvLayer& cache);
void heads_to_cache(const CudaContext& cuda, const Heads& heads, const Positions& positions,
                    const KvLayer& cache);
void attention(const CudaContext& cuda, const float* q, int64_t rows, int64_t heads,
               const Positions& positions, float scale, const KvLayer& cache, float* partials, float* y);
void router_top_k(const CudaContext& cuda, const float* logits, int64_t rows, int64_t experts, int64_t k,
                  bool renormalise, int32_t* ids, float* weights);
void generate_router_logits(const CudaContext& cuda, const RouteGenerator& generator, const RouteMix& mix,
                            int64_t layer, const int32_t* ids, const int32_t* positions, int64_t rows,
                            int64_t experts, bool forecast, float* logits);
void expert_products(const CudaContext& cuda, const float* x, const ExpertRoutes& routes,
                     const ExpertRows& experts, int32_t first, int32_t last, float* activations,
                     float* outputs);
void expert_sums(const CudaContext& cuda, const float* outputs, const ExpertRoutes& routes, int64_t hidden,
                 float* y);

}  // namespace sluice::cuda
