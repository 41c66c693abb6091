// Checks that a kernel touches only what it declares.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "device/memory_map.h"
#include "device/stream.h"

namespace sluice {

/// Runs `body` on memory whose undeclared bytes are poisoned, twice with different bytes, then as it is; the
/// last run stays. Returns a sentence for each finding:
/// - a byte of a buffer outside `writes` changed in any of the runs;
/// - a byte inside `writes` depends on poison: the body reads what it has not declared to read. (Bytes of
///   `writes` that are not in `reads` are poisoned too; leaving one untouched is no read.)
/// `body` must give the same bytes for the same declared bytes.
std::vector<std::string> run_shadowed(std::span<const ByteRange> reads, std::span<const ByteRange> writes,
                                      const MemoryMap& memory, const std::function<void()>& body);

}  // namespace sluice
