// Qwen3-MoE (Qwen3-30B-A3B, Qwen3-235B-A22B, Qwen3-Coder): grouped-query attention with per-head norms of
// queries and keys, and a softmax top-k router in every MoE layer; single layers may be dense.
#pragma once

#include <memory>

#include "models/model.h"

namespace sluice {

std::unique_ptr<Model> load_qwen3_moe(const Checkpoint& checkpoint, Device& device,
                                      const LoadOptions& options);

}  // namespace sluice
