// Qwen2-MoE (Qwen1.5-MoE-A2.7B, Qwen2-57B-A14B): biases on queries, keys and values, a softmax top-k router
// whose weights are not renormalised, and beside it a shared expert behind a sigmoid gate; single layers may
// be dense.
#pragma once

#include <memory>

#include "models/model.h"

namespace sluice {

std::unique_ptr<Model> load_qwen2_moe(const Checkpoint& checkpoint, Device& device,
                                      const LoadOptions& options);

}  // namespace sluice
