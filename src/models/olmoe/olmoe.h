// OLMoE (OLMoE-1B-7B): norms of queries and keys over the whole projection, and a softmax top-k router in
// every layer.
#pragma once

#include <memory>

#include "models/model.h"

namespace sluice {

std::unique_ptr<Model> load_olmoe(const Checkpoint& checkpoint, Device& device, const LoadOptions& options);

}  // namespace sluice
