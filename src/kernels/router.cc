// Top-k routing on the host.
#include "kernels/router.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "kernels/cuda/ops.h"

namespace sluice {
namespace {

void route_row(const float* logits, int64_t experts, int64_t k, bool renormalise, std::vector<int32_t>& order,
               int32_t* ids, float* weights) {
  order.resize(static_cast<size_t>(experts));
  for (int64_t e = 0; e < experts; ++e) order[static_cast<size_t>(e)] = static_cast<int32_t>(e);
  std::partial_sort(order.begin(), order.begin() + k, order.end(), [=](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  const float highest = logits[order[0]];
  float total = 0;
  for (int64_t e = 0; e < experts; ++e) total += std::exp(logits[e] - highest);
  float chosen = 0;
  for (int64_t i = 0; i < k; ++i) {
    ids[i] = order[static_cast<size_t>(i)];
    weights[i] = std::exp(logits[ids[i]] - highest) / total;
    chosen += weights[i];
  }
  if (!renormalise) return;
  for (int64_t i = 0; i < k; ++i) weights[i] /= chosen;
}

}  // namespace

void router_top_k(Stream& stream, const float* logits, int64_t rows, int64_t experts, int64_t k,
                  bool renormalise, int32_t* ids, float* weights) {
  SLUICE_CHECK(k >= 1 && k <= experts);
  stream.launch_both(
      {.name = "router_top_k",
       .reads = {range_of(logits, rows * experts)},
       .writes = {range_of(ids, rows * k), range_of(weights, rows * k)}},
      [=](const HostContext&) {
        std::vector<int32_t> order;
        for (int64_t r = 0; r < rows; ++r) {
          route_row(logits + r * experts, experts, k, renormalise, order, ids + r * k, weights + r * k);
        }
      },
      SLUICE_CUDA_OP(cuda::router_top_k, logits, rows, experts, k, renormalise, ids, weights));
}

}  // namespace sluice
