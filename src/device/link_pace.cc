// Sleeping instead of copying slowly: the processor is free meanwhile, as it is beside a DMA engine.
#include "device/link_pace.h"

#include <thread>

namespace sluice {

bool LinkPace::crosses(const void* source) const {
  const auto* address = static_cast<const std::byte*>(source);
  const auto block = pinned_.lower_bound(address);  // the last one that begins at or before it
  return block != pinned_.end() && address < block->first + block->second;
}

std::chrono::nanoseconds LinkPace::time_of(size_t bytes) const {
  return std::chrono::nanoseconds(static_cast<int64_t>(static_cast<double>(bytes) / bytes_per_ms_ * 1e6));
}

LinkCrossing::~LinkCrossing() {
  if (bytes_ > 0) std::this_thread::sleep_until(start_ + pace_->time_of(bytes_));
}

}  // namespace sluice
