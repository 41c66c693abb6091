// FNV-1a with 64 bits: finds damaged and mixed-up files, not forged ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sluice {

inline constexpr uint64_t kFnvStart = 0xcbf29ce484222325;

/// Goes on from `hash`, so that pieces can be hashed one after the other.
inline uint64_t fnv1a(std::span<const std::byte> bytes, uint64_t hash = kFnvStart) {
  for (const std::byte byte : bytes) hash = (hash ^ static_cast<uint64_t>(byte)) * 0x100000001b3;
  return hash;
}
inline uint64_t fnv1a(std::string_view text, uint64_t hash = kFnvStart) {
  return fnv1a(std::as_bytes(std::span(text)), hash);
}

}  // namespace sluice
