// Who wrote a slot last: the audit's memory. Kept only while audits run.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "device/device.h"
#include "experts/slot_map.h"

namespace sluice {

/// Why a slot got a new owner and new bytes.
enum class SlotWrite : int32_t {
  kNone = 0,
  kDemand,      // a layer's miss
  kPrediction,  // expected by the layer before
  kTouched,     // a touched pass, into its ring
  kAdoption,    // out of a pass's region
  kRegion,      // lent to a pass, which writes it as it likes
  kFill,        // filled while nothing asked for it
};
std::string_view name_of(SlotWrite cause);

struct SlotWriteRecord {
  int64_t sequence = 0;  // over all slots of the pool, from 1
  SlotWrite cause = SlotWrite::kNone;
  int32_t id = -1;  // layer * experts + expert of the new owner; -1: none
};

/// The last few writes of one slot, newest first.
using SlotHistory = std::array<SlotWriteRecord, 4>;

/// A ring of writes for each slot and one sequence number for all, in device memory. Writes are noted on the
/// compute stream when they are planned, which is the order in which a slot's copies run.
class SlotLog {
 public:
  SlotLog(Device& device, Stream& stream, int64_t slots);

  /// Every slot of `plan`; the owner of an entry is `first_id` + its source row, or with first_id -1 what the
  /// map says.
  void note(Stream& stream, SlotWrite cause, const SlotMapView& map, int32_t first_id, const CopyPlan& plan);
  /// Slots [first, first + count), without owners.
  void note_range(Stream& stream, SlotWrite cause, int32_t first, int32_t count);

  ByteRange range() const { return {memory_.data(), memory_.bytes()}; }
  /// For operations that declared range().
  const SlotHistory* histories() const;

 private:
  Buffer memory_;  // the sequence number (64 bytes), then [slots] SlotHistory
};

}  // namespace sluice
