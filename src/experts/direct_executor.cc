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
  run_beside(compute, input);
  const ExpertRows view{layer.layout,     layer.rows.as<std::byte>(),
                        identity_.data(), layer.scalars.data(),
                        layer.experts,    layer.compute};
  expert_products(compute, input.x, input.routes, view, 0, static_cast<int32_t>(layer.experts),
                  input.activations, input.outputs);
  expert_sums(compute, input.outputs, input.routes, layer.layout.hidden, y);
}

void ObservedExecutor::run(Stream& compute, const MoeInput& input, float* y) {
  const MoeBlock block{input, y};
  run_blocks(compute, {&block, 1});
}

void ObservedExecutor::run_blocks(Stream& compute, std::span<const MoeBlock> blocks) {
  if (observer_) {
    int64_t rows = 0, k = 0;
    for (const MoeBlock& block : blocks) {
      rows += block.input.routes.rows;
      k = block.input.routes.k;
    }
    ids_.resize(static_cast<size_t>(rows * k));
    int32_t* target = ids_.data();
    for (const MoeBlock& block : blocks) {
      const int64_t n = block.input.routes.rows * k;
      compute.copy("routes", target, block.input.routes.ids, static_cast<size_t>(n) * sizeof(int32_t));
      target += n;
    }
    device_.wait(compute, "observed routes");
    observer_(layer_numbers_[static_cast<size_t>(blocks.front().input.layer)], ids_, rows);
  }
  inner_.run_blocks(compute, blocks);
}

}  // namespace sluice
