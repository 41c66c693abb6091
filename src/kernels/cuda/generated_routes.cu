// Generated scores: a thread an expert.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/generated_routes_formula.h"

namespace sluice::cuda {
namespace {

constexpr int kThreads = 128;

__global__ void scores_kernel(RouteGenerator generator, RouteMix mix, uint32_t layer, const int32_t* ids,
                              const int32_t* positions, int experts, bool forecast, float* logits) {
  let_next_begin();
  wait_for_previous();
  const int row = static_cast<int>(blockIdx.y);
  const int expert = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (expert >= experts) return;
  logits[static_cast<int64_t>(row) * experts + expert] =
      route_score(generator, mix, *generator.topic, layer, ids[row], positions[row],
                  static_cast<uint32_t>(expert), forecast);
}

}  // namespace

void generate_router_logits(const CudaContext& cuda, const RouteGenerator& generator, const RouteMix& mix,
                            int64_t layer, const int32_t* ids, const int32_t* positions, int64_t rows,
                            int64_t experts, bool forecast, float* logits) {
  if (rows == 0) return;
  const dim3 grid(blocks_for(experts, kThreads), static_cast<unsigned>(rows));
  launch_behind(cuda, scores_kernel, grid, kThreads, generator, mix, static_cast<uint32_t>(layer), ids,
                positions, static_cast<int>(experts), forecast, logits);
}

}  // namespace sluice::cuda
