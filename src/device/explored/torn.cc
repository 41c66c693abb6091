// What is torn is found by comparing memory before and after, so that kernels need no second form.
#include "device/explored/torn.h"

#include <algorithm>
#include <cstring>

namespace sluice {
namespace {

using Bytes = std::vector<std::byte>;

std::byte* bytes_of(const ByteRange& range) {
  return static_cast<std::byte*>(const_cast<void*>(range.begin));
}

// Moves the changed bytes with numbers in [first, last) out of memory; `old` is what lay there.
void hold_back(const ByteRange& range, const Bytes& old, size_t first, size_t last, size_t& number,
               std::vector<HeldWrite>& held) {
  std::byte* data = bytes_of(range);
  bool running = false;
  for (size_t i = 0; i < range.bytes; ++i) {
    if (data[i] == old[i]) {
      running = false;
      continue;
    }
    const size_t n = number++;
    if (n < first || n >= last) {
      running = false;
      continue;
    }
    if (!running) held.push_back({data + i, {}});
    running = true;
    held.back().bytes.push_back(data[i]);
    data[i] = old[i];
  }
}

}  // namespace

std::vector<HeldWrite> run_torn(std::span<const ByteRange> writes, bool hold_first,
                                const std::function<void()>& body) {
  std::vector<Bytes> old;
  for (const ByteRange& range : writes) old.emplace_back(bytes_of(range), bytes_of(range) + range.bytes);
  body();
  size_t changed = 0;
  for (size_t r = 0; r < writes.size(); ++r) {
    const std::byte* data = bytes_of(writes[r]);
    for (size_t i = 0; i < writes[r].bytes; ++i) changed += data[i] != old[r][i] ? 1 : 0;
  }
  std::vector<HeldWrite> held;
  if (changed < 2) return held;
  const size_t middle = changed / 2;
  size_t number = 0;
  for (size_t r = 0; r < writes.size(); ++r) {
    hold_back(writes[r], old[r], hold_first ? 0 : middle, hold_first ? middle : changed, number, held);
  }
  return held;
}

void finish(const std::vector<HeldWrite>& held) {
  for (const HeldWrite& write : held) std::memcpy(write.at, write.bytes.data(), write.bytes.size());
}

void run_copy(std::span<const CopyEntry> entries) {
  for (const CopyEntry& entry : entries) std::memcpy(entry.target, entry.source, entry.bytes);
}

size_t total_bytes(std::span<const CopyEntry> entries) {
  size_t bytes = 0;
  for (const CopyEntry& entry : entries) bytes += entry.bytes;
  return bytes;
}

std::vector<CopyEntry> cut_copy(std::vector<CopyEntry>& entries, size_t bytes) {
  size_t i = 0;
  while (i < entries.size() && bytes >= entries[i].bytes) bytes -= entries[i++].bytes;
  std::vector<CopyEntry> rest(entries.begin() + static_cast<std::ptrdiff_t>(i), entries.end());
  entries.resize(i);
  if (bytes > 0) {
    CopyEntry& cut = rest.front();
    entries.push_back({cut.target, cut.source, bytes});
    cut = {static_cast<std::byte*>(cut.target) + bytes, static_cast<const std::byte*>(cut.source) + bytes,
           cut.bytes - bytes};
  }
  return rest;
}

}  // namespace sluice
