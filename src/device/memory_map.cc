// Buffers ordered by address.
#include "device/memory_map.h"

namespace sluice {

void MemoryMap::add(void* data, size_t bytes, std::string_view purpose, MemoryKind kind) {
  std::string name(purpose);
  const int use = ++uses_[name];
  if (use > 1) name += " #" + std::to_string(use);
  auto* begin = static_cast<std::byte*>(data);
  blocks_[begin] = {begin, bytes, std::move(name), kind};
}

const MemoryBlock* MemoryMap::find(const void* address) const {
  auto* at = static_cast<std::byte*>(const_cast<void*>(address));
  auto after = blocks_.upper_bound(at);
  if (after == blocks_.begin()) return nullptr;
  const MemoryBlock& block = std::prev(after)->second;
  return at < block.data + block.bytes ? &block : nullptr;
}

bool MemoryMap::inside(ByteRange range) const {
  auto* begin = static_cast<std::byte*>(const_cast<void*>(range.begin));
  if (const MemoryBlock* block = find(begin)) {
    return range.bytes <= static_cast<size_t>(block->data + block->bytes - begin);
  }
  const auto next = blocks_.upper_bound(begin);
  return next == blocks_.end() || next->first - begin >= static_cast<std::ptrdiff_t>(range.bytes);
}

std::string MemoryMap::describe(ByteRange range) const {
  const MemoryBlock* block = find(range.begin);
  if (block == nullptr) return std::to_string(range.bytes) + " bytes of host memory";
  const size_t offset = static_cast<size_t>(static_cast<const std::byte*>(range.begin) - block->data);
  return block->name + "[" + std::to_string(offset) + ", " + std::to_string(offset + range.bytes) + ")";
}

}  // namespace sluice
