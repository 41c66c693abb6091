// Causal attention with grouped queries over a KV cache. Ainslie et al., "GQA", 2023.
#pragma once

#include <string_view>

#include "device/stream.h"
#include "kernels/positions.h"

namespace sluice {

/// The numbers of keys and values in a cache.
enum class KvFormat { kF32, kBf16 };
constexpr int64_t element_bytes(KvFormat format) { return format == KvFormat::kBf16 ? 2 : 4; }
constexpr std::string_view name_of(KvFormat format) { return format == KvFormat::kBf16 ? "bf16" : "f32"; }

/// Keys and values of one layer of one sequence: [kv_heads, capacity, head_dim] each.
struct KvLayer {
  void* keys = nullptr;
  void* values = nullptr;
  int64_t kv_heads = 0, capacity = 0, head_dim = 0;
  KvFormat format = KvFormat::kF32;

  /// A head's key at `position`, [head_dim], and those that follow; T is float or, for BF16, uint16_t (in a
  /// kernel any type of that size).
  template <class T>
  constexpr T* key(int64_t head, int64_t position) const {
    return static_cast<T*>(keys) + offset(head, position);
  }
  template <class T>
  constexpr T* value(int64_t head, int64_t position) const {
    return static_cast<T*>(values) + offset(head, position);
  }
  /// The bytes of `count` positions of a head, from `position` on.
  ByteRange key_range(int64_t head, int64_t position, int64_t count) const {
    return range(keys, head, position, count);
  }
  ByteRange value_range(int64_t head, int64_t position, int64_t count) const {
    return range(values, head, position, count);
  }
  int64_t bytes() const { return kv_heads * capacity * head_dim * element_bytes(format); }

 private:
  constexpr int64_t offset(int64_t head, int64_t position) const {
    return (head * capacity + position) * head_dim;
  }
  ByteRange range(void* base, int64_t head, int64_t position, int64_t count) const {
    const int64_t size = element_bytes(format);
    return {static_cast<std::byte*>(base) + offset(head, position) * size,
            static_cast<size_t>(count * head_dim * size)};
  }
};

/// Stores k and v [rows, kv_heads, head_dim] at `positions`, rounded to the
/// cache's format.
void kv_store(Stream& stream, const float* k, const float* v, int64_t rows, const Positions& positions,
              const KvLayer& cache);

/// In decode a device cuts a row's positions into segments that are worked on side by side: at most kSegments
/// of at least 512.
inline constexpr int64_t kSegments = 64, kSplitRows = 8;
constexpr int64_t attention_segment(int64_t capacity) {
  constexpr int64_t kLeast = 512;
  return (capacity + kSegments * kLeast - 1) / (kSegments * kLeast) * kLeast;
}
/// Floats that attention() needs for the segments of kSplitRows rows.
constexpr int64_t attention_partials(int64_t heads, int64_t head_dim) {
  return kSplitRows * heads * kSegments * (head_dim + 2);
}

/// y[r, h, :] = softmax(scale * q[r, h, :] . keys) . values over positions 0 to its own. q and y [rows,
/// heads, head_dim]; heads is a multiple of the cache's kv_heads. The arithmetic of a row depends on its
/// position and the cache's capacity alone, not on the other rows of the call. `partials`: scratch
/// [attention_partials] in device memory, or null: segments one after the other.
void attention(Stream& stream, const float* q, int64_t rows, int64_t heads, const Positions& positions,
               float scale, const KvLayer& cache, float* partials, float* y);

}  // namespace sluice
