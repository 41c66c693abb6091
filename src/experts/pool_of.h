// From a layer to its pool.
#pragma once

#include "experts/expert_state.h"

namespace sluice {

/// Index in `state.pools` of the pool that holds MoE layer `layer`.
inline size_t pool_of(const ExpertState& state, size_t layer) {
  size_t p = 0;
  while (state.pools[p].get() != state.layers[layer].pool) ++p;
  return p;
}

}  // namespace sluice
