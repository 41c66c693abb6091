// Memory of the host backend.
#pragma once

#include <cstddef>
#include <string_view>

#include "device/device.h"

namespace sluice {

/// Zeroed pages. Mapped, not malloc'd: pages that nobody touches (the tail of a KV cache) cost nothing.
/// Throws Error kOutOfMemory.
Buffer map_memory(size_t bytes, std::string_view purpose);

}  // namespace sluice
