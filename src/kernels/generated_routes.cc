// The host version of generated scores.
#include "kernels/generated_routes.h"

#include "base/thread_pool.h"
#include "kernels/cuda/ops.h"
#include "kernels/generated_routes_formula.h"

namespace sluice {

void generate_router_logits(Stream& stream, const RouteGenerator& generator, int64_t layer,
                            const int32_t* ids, const int32_t* positions, int64_t rows, int64_t experts,
                            bool forecast, float* logits) {
  const RouteMix mix = rows <= kDecodeRows ? generator.decode : generator.prompt;
  stream.launch_both(
      {.name = "generated routes",
       .reads = {range_of(ids, rows), range_of(positions, rows), range_of(generator.topic, 1)},
       .writes = {range_of(logits, rows * experts)}},
      [=](const HostContext& host) {
        host.pool.parallel_for(rows, 4, [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) {
            for (int64_t e = 0; e < experts; ++e) {
              logits[r * experts + e] =
                  route_score(generator, mix, *generator.topic, static_cast<uint32_t>(layer), ids[r],
                              positions[r], static_cast<uint32_t>(e), forecast);
            }
          }
        });
      },
      SLUICE_CUDA_OP(cuda::generate_router_logits, generator, mix, layer, ids, positions, rows, experts,
                     forecast, logits));
}

}  // namespace sluice
