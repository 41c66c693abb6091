// Memory that a mapping of a file takes.
#pragma once

#include <cstddef>
#include <span>

namespace sluice {

/// Whole pages within `bytes`, a part of a read-only mapping of a file, no longer count as this process's
/// memory; they are read again when they are touched. For those who go through files larger than memory.
void release_pages(std::span<const std::byte> bytes);

}  // namespace sluice
