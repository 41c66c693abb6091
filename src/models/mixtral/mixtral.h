// Mixtral (Mixtral-8x7B, Mixtral-8x22B): grouped-query attention, and in every layer a softmax top-k router
// whose weights are renormalised.
#pragma once

#include <memory>

#include "models/model.h"

namespace sluice {

std::unique_ptr<Model> load_mixtral(const Checkpoint& checkpoint, Device& device, const LoadOptions& options);

}  // namespace sluice
