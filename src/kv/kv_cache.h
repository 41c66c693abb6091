// The key-value cache of one sequence.
#pragma once

#include <cstdint>
#include <vector>

#include "device/device.h"
#include "kernels/attention.h"
#include "kernels/matrix.h"

namespace sluice {

/// The cache's numbers where products compute like this.
constexpr KvFormat kv_format(Compute compute) {
  return compute == Compute::kBf16 ? KvFormat::kBf16 : KvFormat::kF32;
}

/// What a family's attention layers keep for each token.
struct KvShape {
  int64_t layers = 0, kv_heads = 0, head_dim = 0;
  KvFormat format = KvFormat::kF32;
  /// Bytes for one token over all layers, keys and values.
  int64_t bytes_per_token() const { return layers * kv_heads * head_dim * 2 * element_bytes(format); }
};

/// Keys and values of up to `capacity` tokens, contiguous for each layer and head. Positions below
/// length() are valid; a forward appends, truncate() forgets.
class KvCache {
 public:
  /// Throws Error kOutOfMemory.
  KvCache(Device& device, const KvShape& shape, int64_t capacity);

  int64_t capacity() const { return capacity_; }
  int64_t length() const { return length_; }
  KvLayer layer(int64_t index) const;
  /// Marks `tokens` more positions as valid, after their keys and values were queued.
  void advance(int64_t tokens);
  /// Forgets positions from `length` on; length <= length().
  void truncate(int64_t length);

 private:
  KvShape shape_;
  int64_t capacity_, length_ = 0;
  Buffer buffer_;
};

}  // namespace sluice
