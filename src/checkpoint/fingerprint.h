// Tells checkpoints apart without reading their weights.
#pragma once

#include <cstdint>

#include "checkpoint/checkpoint.h"

namespace sluice {

/// A hash of config.json as it is written and of every tensor's name, type and shape. Two trainings of one
/// architecture with the same config have the same one: good enough for advice such as a list of popular
/// experts, not to tell weights apart. Throws Error where config.json cannot be read.
uint64_t fingerprint(const Checkpoint& checkpoint);

}  // namespace sluice
