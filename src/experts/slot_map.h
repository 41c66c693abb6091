// The slot map: which expert each slot of the device's pool holds. Plain data in one device buffer.
//
// Invariants (the functions of slot_functions.h keep them; check_integrity() verifies them):
// 1. slot_of and owner_of are inverse on held entries.
// 2. A slot with last_use == clock belongs to the running call and is nobody's victim.
// 3. A slot below `floor` belongs to a running pass: no hit, nobody's victim.
// 4. A listed slot is held, lies at or above `floor`, and is nobody's victim.
// 5. Whoever gives a slot to a new owner clears the old owner's mapping first.
// 6. Everything is an index, no pointer: a copy of the bytes is a snapshot, readable through view_of().
// 7. One stream writes the map; other streams read only plans and bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "device/device.h"

namespace sluice {

/// Limits that let sets of a layer's experts live in registers and on the stack.
inline constexpr int32_t kMaxMoeLayers = 1024;
inline constexpr int32_t kMaxExperts = 1024;

/// Values of last_use that no clock takes.
inline constexpr int64_t kEmptySlot = 0;
inline constexpr int64_t kPredictedSlot = 1;
inline constexpr int64_t kFirstClock = 2;

enum class SlotError : int32_t {
  kNone = 0,
  kBadLayer,         // detail: the layer
  kBadId,            // detail: the expert id
  kBadRange,         // detail: the first slot asked for, or the size of the region
  kBadSlotCount,     // detail: the number of slots asked for
  kNoEvictableSlot,  // detail: how many slots are missing
  kPlanFull,         // detail: entries that the plan would have needed
  kListedSlot,       // detail: the slot that a running pass still needs
  kRegionRunning,    // detail: floor
};

/// What became of a call. A value: the map is untouched where it failed.
struct SlotStatus {
  SlotError code = SlotError::kNone;
  int32_t layer = -1;  // -1 where no layer is involved
  int64_t detail = 0;
  bool ok() const { return code == SlotError::kNone; }
  bool operator==(const SlotStatus&) const = default;
};

/// One line that says what was wrong and where.
std::string describe(const SlotStatus& status);

/// Throws Error kOutOfMemory for kNoEvictableSlot and kInvalidArgument for all others.
void throw_if_failed(const SlotStatus& status);

/// How victims are ordered once no empty and no predicted slot is left.
enum class SlotPolicy : int32_t {
  kLru,     // lowest last_use, ties to the lowest slot
  kScored,  // highest staleness(), ties to the lowest last_use, then to the lowest slot
};

/// Sizes of a map, fixed for its life. Layers are MoE layers, counted without dense ones.
struct SlotMapShape {
  int32_t layers = 0, experts = 0;  // [1, kMaxMoeLayers], [1, kMaxExperts]
  int32_t max_slots = 0;            // [1, layers * experts]: what resize() may grow to
  SlotPolicy policy = SlotPolicy::kLru;
  int32_t beta = 4;  // weight of a layer's next turn under kScored, >= 0
};

/// The scalars of the state, at the start of the buffer.
struct SlotMapHeader {
  int64_t clock;           // kFirstClock at first; +1 for each call that touches experts
  int64_t step;            // turns of all layers that were begun; in decode, tokens
  int32_t slots;           // S, at most max_slots
  int32_t floor;           // slots below it belong to a running pass
  int32_t region_running;  // 1 between begin_region and end_region
  int32_t turn;            // the layer of the last ensure or materialise
  SlotStatus status;       // the first failure of an operation since it was cleared
};

/// Totals of one layer since reset(). A call's experts are counted once an id (routed) or once a call
/// (distinct).
struct LayerCounters {
  uint64_t calls;           // ensure calls
  uint64_t routed;          // ids, without padding
  uint64_t routed_hits;     // ids whose expert was resident
  uint64_t distinct;        // hits + misses
  uint64_t hits;            // distinct experts that were resident
  uint64_t misses;          // distinct experts that were not
  uint64_t fetched;         // misses that got a slot
  uint64_t stalls;          // calls that had to fetch: their layer waited for the link
  uint64_t predicted;       // experts installed by install_predictions
  uint64_t predicted_used;  // hits on a slot that was predicted and not used yet
};

/// The search index that goes with the arrays: tournament trees whose nodes name the slot to evict first. The
/// leaf of a slot that can't be evicted, and nodes above none, hold -1. Root at 1, children of i at 2i, 2i
/// + 1.
struct SlotIndex {
  int64_t* evictable = nullptr;    // [1] slots at or above floor that are not listed
  int32_t* order = nullptr;        // [2 * max_slots] over all slots, leaf max_slots + slot
  int32_t* layer_order = nullptr;  // [layers, 2 * experts], leaf experts + expert; kScored only
};

/// The map as functions and kernels get it.
struct SlotMapView {
  SlotMapShape shape;
  SlotMapHeader* header = nullptr;
  LayerCounters* counters = nullptr;  // [layers]
  int64_t* last_use = nullptr;        // [max_slots] kEmptySlot, kPredictedSlot or the clock of the last touch
  int64_t* used_step = nullptr;       // [max_slots] step of the last touch, 0 where last_use is no clock
  int64_t* recency = nullptr;         // [layers, experts] clock of the last ensure that named it, -1 never
  int32_t* slot_of = nullptr;         // [layers, experts] the slot that holds it, -1 none
  int32_t* owner_of = nullptr;        // [max_slots] layer * experts + expert, -1 none
  uint8_t* listed = nullptr;          // [max_slots] 1: a running pass counts on this slot and has not used it
  SlotIndex index;
  size_t core_bytes = 0;  // header up to and with listed: what the reference defines
  size_t bytes = 0;       // all of it, from header

  constexpr int32_t flat(int32_t layer, int32_t expert) const { return layer * shape.experts + expert; }
  /// The slot that serves (layer, expert), -1 if none does: a slot below the floor is no hit.
  constexpr int32_t resident(int32_t id) const { return slot_of[id] >= header->floor ? slot_of[id] : -1; }
  ByteRange range() const { return {header, bytes}; }
};

/// Bytes of a map; throws Error kInvalidArgument where `shape` is outside its limits.
size_t slot_map_bytes(const SlotMapShape& shape);
/// The map that lies at `data` (8-byte aligned, slot_map_bytes(shape) long): the state itself or a copy of
/// it.
SlotMapView view_of(void* data, const SlotMapShape& shape);

/// What to copy, written by the functions of the map and read by the copies behind them. An entry is a
/// destination slot and a source row: the expert's id inside its layer (adopt: a slot). Owned by the caller.
struct CopyPlan {
  int32_t* dst_slot = nullptr;  // [capacity]
  int32_t* src_row = nullptr;   // [capacity]
  int32_t* count = nullptr;     // [1]; each function sets it, to 0 where it fails
  int32_t capacity = 0;
};

/// Owns the state of one pool.
class SlotMap {
 public:
  /// Allocates for shape.max_slots and queues the reset to `slots` empty ones. Throws Error kInvalidArgument
  /// for sizes outside their limits, kOutOfMemory.
  SlotMap(Device& device, Stream& stream, const SlotMapShape& shape, int32_t slots);

  const SlotMapView& view() const { return view_; }
  const SlotMapShape& shape() const { return view_.shape; }

 private:
  Buffer buffer_;
  SlotMapView view_;
};

/// How stale the expert of a slot is under kScored, in 1/layers of a step: age in steps + beta * layers until
/// its layer's next turn / layers. Replayed traces use the same rule (replay_scored.cc).
inline int64_t staleness(const SlotMapView& map, int32_t slot) {
  const int32_t layers = map.shape.layers;
  const int32_t layer = map.owner_of[slot] / map.shape.experts;
  const int32_t until_turn = (layer - map.header->turn - 1 + layers) % layers + 1;
  return (map.header->step - map.used_step[slot]) * layers + int64_t{map.shape.beta} * until_turn;
}

}  // namespace sluice
