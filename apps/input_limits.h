// How much a user's input may hold.
#pragma once

#include <cstddef>

namespace sluice::apps {

// Prompts, ids, texts: ten million positions of six bytes, more than any model has. Without a limit a device
// that never ends would fill the memory.
inline constexpr size_t kMostInputBytes = 64'000'000;

}  // namespace sluice::apps
