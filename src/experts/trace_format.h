// Bytes of a trace file; all numbers are little-endian.
//
//   header  magic[8] | version u32 | size of what follows up to the checksum u32
//           | L u32 | E u32 | K u32 | length of the family's name u32 | name
//           | L x { layer number u32, row bytes u64 } | checksum u64
//   step    kStepMark u32 | kind u32 | rows u32 | ids u16 [L, rows, K] | checksum u64
//   end     kEndMark u32 | number of steps u64 | checksum u64
//
// A checksum covers its record from the first byte on. It finds a torn or damaged record, not a forged one.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/hash.h"

namespace sluice::trace_format {

static_assert(std::endian::native == std::endian::little, "records are copied as they lie in memory");

inline constexpr std::string_view kMagic = "SLTRACE\n";
inline constexpr uint32_t kVersion = 1;
inline constexpr uint32_t kStepMark = 0x50455453;  // "STEP"
inline constexpr uint32_t kEndMark = 0x21444e45;   // "END!"
inline constexpr size_t kStepHeaderBytes = 12;
inline constexpr size_t kChecksumBytes = 8;
inline constexpr int64_t kMaxLayers = 4096;
inline constexpr int64_t kMaxTraceExperts = 65535;  // 0xffff marks padding
inline constexpr int64_t kMaxTopK = 4096;
inline constexpr int64_t kMaxRows = int64_t{1} << 20;
inline constexpr size_t kMaxFamilyBytes = 256;

inline uint64_t checksum(std::span<const std::byte> bytes) { return fnv1a(bytes); }

template <class T>
void append(std::vector<std::byte>& record, const T& value) {
  static_assert(std::is_integral_v<T>);
  const auto bytes = std::as_bytes(std::span(&value, 1));
  record.insert(record.end(), bytes.begin(), bytes.end());
}

template <class T>
T load(std::span<const std::byte> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace sluice::trace_format
