// One buffer for all layers: [layers, 2, kv_heads, capacity, head_dim].
#include "kv/kv_cache.h"

#include "base/error.h"

namespace sluice {

KvCache::KvCache(Device& device, const KvShape& shape, int64_t capacity)
    : shape_(shape),
      capacity_(capacity),
      buffer_(device.allocate(static_cast<size_t>(shape.bytes_per_token() * capacity), "KV cache")) {
  SLUICE_CHECK(capacity >= 1);
}

KvLayer KvCache::layer(int64_t index) const {
  SLUICE_CHECK(index >= 0 && index < shape_.layers);
  KvLayer layer{nullptr, nullptr, shape_.kv_heads, capacity_, shape_.head_dim, shape_.format};
  std::byte* const keys = buffer_.as<std::byte>() + index * 2 * layer.bytes();
  layer.keys = keys;
  layer.values = keys + layer.bytes();
  return layer;
}

void KvCache::advance(int64_t tokens) {
  SLUICE_CHECK(tokens >= 0 && length_ + tokens <= capacity_);
  length_ += tokens;
}

void KvCache::truncate(int64_t length) {
  SLUICE_CHECK(length >= 0 && length <= length_);
  length_ = length;
}

}  // namespace sluice
