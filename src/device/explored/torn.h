// Operations cut in two, so that other streams see half of what they write.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "device/stream.h"

namespace sluice {

/// Bytes that a kernel has computed and memory does not show yet.
struct HeldWrite {
  std::byte* at = nullptr;
  std::vector<std::byte> bytes;
};

/// Runs `body`, then puts the old bytes back in one half of what it changed inside `writes`, and returns the
/// new ones. Empty if fewer than two bytes changed. `hold_first`: it is the first half that comes later.
std::vector<HeldWrite> run_torn(std::span<const ByteRange> writes, bool hold_first,
                                const std::function<void()>& body);
void finish(const std::vector<HeldWrite>& held);

void run_copy(std::span<const CopyEntry> entries);
size_t total_bytes(std::span<const CopyEntry> entries);
/// Takes what follows the first `bytes` bytes out of `entries` and returns it.
std::vector<CopyEntry> cut_copy(std::vector<CopyEntry>& entries, size_t bytes);

}  // namespace sluice
