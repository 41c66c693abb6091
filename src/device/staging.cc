// Slots move from free to the running step, to a released step, and back.
#include "device/staging.h"

#include <utility>

#include "base/error.h"
#include "base/units.h"

namespace sluice {

StagingRing::StagingRing(Device& device, size_t slots, size_t slot_bytes, std::string purpose)
    : device_(device),
      slots_(slots),
      // Slots share no cache line.
      slot_bytes_((slot_bytes + 63) / 64 * 64),
      purpose_(std::move(purpose)),
      memory_(device.allocate(slots_ * slot_bytes_, purpose_, MemoryKind::kPinned)) {
  for (size_t slot = 0; slot < slots_; ++slot) free_.push_back(slot);
}

std::byte* StagingRing::acquire(size_t bytes) {
  if (bytes > slot_bytes_) {
    throw Error(ErrorCode::kInvalidArgument, purpose_ + ": " + format_bytes(bytes) +
                                                 " do not fit into a staging slot of " +
                                                 format_bytes(slot_bytes_));
  }
  if (free_.empty()) reclaim();
  if (free_.empty()) {
    throw Error(ErrorCode::kOutOfMemory, purpose_ + ": all " + std::to_string(slots_) +
                                             " staging slots belong to steps that have not run");
  }
  const size_t slot = free_.front();
  free_.pop_front();
  current_.push_back(slot);
  std::byte* data = memory_.as<std::byte>() + slot * slot_bytes_;
  device_.host_writes({data, slot_bytes_}, purpose_.c_str());
  return data;
}

void StagingRing::release_after(Stream& stream) {
  if (current_.empty()) return;
  Step step;
  if (spare_events_.empty()) {
    step.end = device_.make_event(purpose_ + " read");
  } else {
    step.end = std::move(spare_events_.back());
    spare_events_.pop_back();
  }
  stream.record(*step.end);
  step.slots = std::exchange(current_, {});
  steps_.push_back(std::move(step));
}

// Not only the oldest: steps may have ended on different streams.
void StagingRing::reclaim() {
  for (auto step = steps_.begin(); step != steps_.end();) {
    if (!device_.done(*step->end)) {
      ++step;
      continue;
    }
    free_.insert(free_.end(), step->slots.begin(), step->slots.end());
    spare_events_.push_back(std::move(step->end));
    step = steps_.erase(step);
  }
}

}  // namespace sluice
