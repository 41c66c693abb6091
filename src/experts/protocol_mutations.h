// Rules of the protocols that a test breaks on purpose, to show that exploration notices (docs/mutations.md).
#pragma once

#include <cstdint>

#include "device/stream.h"
#include "experts/slot_map.h"

namespace sluice {

/// Each one takes a rule out. All off outside of the table of mutations.
struct ProtocolMutations {
  bool keep_region_mapped = false;       // overwritten slots keep the mapping of their old owners
  bool no_floor = false;                 // a pass unmaps its region but does not raise the floor
  bool unlist_at_begin = false;          // residents that a pass counts on may be evicted at once
  bool adopt_after_release = false;      // a tile's slots are given back before its experts were adopted
  bool one_predicted_plan = false;       // the predictions of all layers share one plan
  bool predict_stream_installs = false;  // a second stream writes the slot map
  bool forget_running_call = false;      // predictions may take slots of the running call
  bool adopt_from_cpu = false;           // slots that a pass left empty for the CPU's experts are adopted
  bool keep_untaken_call = false;        // a forward that was given up leaves its call with the workers
  bool decode_in_any_pass = false;       // decode steps may run inside a pass that unmaps on the copy stream
  bool post_before_take = false;         // a block is handed to the workers before the last one was taken
};

namespace mutated {

/// begin_region() and end_region() that leave the mappings of [0, R) as they are.
void begin_region_still_mapped(Stream& stream, const SlotMapView& map, int32_t region_slots);
void end_region_still_mapped(Stream& stream, const SlotMapView& map);
/// Nothing is listed any more.
void unlist_all(Stream& stream, const SlotMapView& map);
/// Slots of the running call look like those of an earlier one.
void forget_running_call(Stream& stream, const SlotMapView& map);

}  // namespace mutated
}  // namespace sluice
