// Page-locked slots through which the host hands tokens, tables and seeds to the device.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"

namespace sluice {

/// A fixed number of slots of equal size. A slot is owned by the step that acquired it until everything that
/// the step queued has run; nobody else writes it before. (Plain rings wrap: the host overwrote what a slow
/// copy had yet to read.) Belongs to one thread.
///
/// Each step: acquire, fill and copy as often as needed, then release_after(stream) with the stream that runs
/// after all of those copies.
class StagingRing {
 public:
  /// Throws Error kOutOfMemory. `purpose` names the memory and the events.
  StagingRing(Device& device, size_t slots, size_t slot_bytes, std::string purpose);

  /// A slot of slot_bytes() for `bytes` bytes, which the host may write now. Never waits. Throws Error
  /// kOutOfMemory if all slots belong to steps that have not run, kInvalidArgument if `bytes` is too large;
  /// nothing changes then.
  std::byte* acquire(size_t bytes);
  /// The slots acquired since the last call come back once what `stream` has queued so far has run.
  void release_after(Stream& stream);

  size_t slots() const { return slots_; }
  size_t slot_bytes() const { return slot_bytes_; }
  /// Slots that acquire could give now without asking the device.
  size_t free_slots() const { return free_.size(); }

 private:
  struct Step {
    std::unique_ptr<Event> end;
    std::vector<size_t> slots;
  };
  void reclaim();

  Device& device_;
  size_t slots_, slot_bytes_;
  std::string purpose_;
  Buffer memory_;
  std::deque<size_t> free_;      // the longest free first
  std::vector<size_t> current_;  // of the running step
  std::deque<Step> steps_;       // released, oldest first
  std::vector<std::unique_ptr<Event>> spare_events_;
};

}  // namespace sluice
