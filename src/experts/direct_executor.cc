// Experts from host memory, and the observer of routes.
#include "experts/direct_executor.h"

#include <algorithm>
#include <numeric>

namespace sluice {

DirectExecutor::DirectExecutor(std::span<const LayerRows> rows) : rows_(rows) {
  int64_t most = 0;
  for (const LayerRows& layer : rows) most = std::max(most, layer.experts);
  identity_.resize(static_cast<size_t>(most));
  std::iota(identity_.begin(), identity_.end(), 0);
}

void DirectExecutor::run(Stream& compute, const MoeInput& input, float* y) {
  const LayerRows& layer = rows_[static_cast<size_t>(input.layer)];
  const ExpertRows view{layer.layout, layer.rows.as<std::byte>(), identity_.data(), layer.scalars.data(),
                        layer.experts};
  expert_products(compute, input.x, input.routes, view, 0, static_cast<int32_t>(layer.experts),
                  input.activations, input.outputs);
  expert_sums(compute, input.outputs, input.routes, layer.layout.hidden, y);
}

void ObservedExecutor::run(Stream& compute, const MoeInput& input, float* y) {
  if (observer_) {
    ids_.resize(static_cast<size_t>(input.routes.rows * input.routes.k));
    compute.copy("routes", ids_.data(), input.routes.ids, ids_.size() * sizeof(int32_t));
    device_.wait(compute, "observed routes");
    observer_(layer_numbers_[static_cast<size_t>(input.layer)], ids_, input.routes.rows);
  }
  inner_.run(compute, input, y);
}

}  // namespace sluice
