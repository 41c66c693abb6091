// Which buffer an address belongs to, for reports and prices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "device/device.h"

namespace sluice {

/// One live buffer.
struct MemoryBlock {
  std::byte* data = nullptr;
  size_t bytes = 0;
  std::string name;  // the purpose; "#2" follows the second buffer of one purpose
  MemoryKind kind = MemoryKind::kDevice;
};

/// The live buffers of a device by address. Names depend on the order of allocation alone.
class MemoryMap {
 public:
  void add(void* data, size_t bytes, std::string_view purpose, MemoryKind kind);
  /// The block that begins at `data` has another size now.
  void resize(void* data, size_t bytes) { blocks_.at(static_cast<std::byte*>(data)).bytes = bytes; }
  void remove(void* data) { blocks_.erase(static_cast<std::byte*>(data)); }

  /// The block that holds `address`, or null.
  const MemoryBlock* find(const void* address) const;
  /// Whether `range` lies in one block or touches none.
  bool inside(ByteRange range) const;
  /// "expert slots[128, 256)"; for memory of nobody here "64 bytes of host memory".
  std::string describe(ByteRange range) const;

  const std::map<std::byte*, MemoryBlock>& blocks() const { return blocks_; }

 private:
  std::map<std::byte*, MemoryBlock> blocks_;
  std::map<std::string, int, std::less<>> uses_;  // of each purpose
};

}  // namespace sluice
