// Sleeping instead of copying slowly: the processor is free meanwhile, as it is beside a DMA engine.
#include "device/link_pace.h"

#include <thread>

namespace sluice {

bool LinkPace::crosses(const void* source) const {
  const auto* address = static_cast<const std::byte*>(source);
  const auto block = device_.lower_bound(address);  // the last one that begins at or before it
  return block == device_.end() || address >= block->first + block->second;
}

std::chrono::nanoseconds LinkPace::time_of(size_t bytes) const {
  return std::chrono::nanoseconds(static_cast<int64_t>(static_cast<double>(bytes) / bytes_per_ms_ * 1e6));
}

LinkCrossing::~LinkCrossing() {
  if (bytes_ == 0) return;
  // A sleep may take some 60 us longer than asked for: ids and tables would seem to cross at a crawl.
  constexpr std::chrono::microseconds kWorthASleep(200);
  const auto end = start_ + pace_->time_of(bytes_);
  if (end - std::chrono::steady_clock::now() > kWorthASleep) std::this_thread::sleep_until(end);
  while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

}  // namespace sluice
