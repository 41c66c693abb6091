// Small steps that the functions on a slot map are made of. Each keeps the arrays and the index in step.
#pragma once

#include <cstdint>

#include "experts/expert_set.h"
#include "experts/slot_functions.h"
#include "experts/slot_index.h"
#include "experts/slot_map.h"

namespace sluice::slot_edit {

inline SlotStatus failed(SlotError code, int32_t layer, int64_t detail) { return {code, layer, detail}; }

inline SlotStatus failed(SlotError code, int32_t layer, int64_t detail, const CopyPlan& plan) {
  *plan.count = 0;
  return {code, layer, detail};
}

inline bool has_layer(const SlotMapView& map, int32_t layer) {
  return layer >= 0 && layer < map.shape.layers;
}

inline void append(const CopyPlan& plan, int32_t slot, int32_t row) {
  const int32_t at = (*plan.count)++;
  plan.dst_slot[at] = slot;
  plan.src_row[at] = row;
}

/// The slot's expert is nowhere afterwards. The slot itself stays in the index as it was: update() must
/// follow.
inline void drop_owner(const SlotMapView& map, int32_t slot) {
  const int32_t owner = map.owner_of[slot];
  if (owner < 0) return;
  map.slot_of[owner] = -1;
  map.owner_of[slot] = -1;
  slot_index::forget(map, owner);
}

/// A call of `layer` that uses its experts begins. A layer that is not after the last one begins a new step.
inline void begin_turn(const SlotMapView& map, int32_t layer) {
  ++map.header->clock;
  map.header->step += layer <= map.header->turn;
  map.header->turn = layer;
}

/// The index is left as it was.
inline void set_use(const SlotMapView& map, int32_t slot, int64_t last_use) {
  map.last_use[slot] = last_use;
  map.used_step[slot] = last_use == map.header->clock ? map.header->step : 0;
}

inline void stamp(const SlotMapView& map, int32_t slot) {
  set_use(map, slot, map.header->clock);
  slot_index::update(map, slot);
}

inline void make_empty(const SlotMapView& map, int32_t slot) {
  drop_owner(map, slot);
  set_use(map, slot, kEmptySlot);
  slot_index::update(map, slot);
}

/// `slot` holds expert `id` from now on, wherever either was before.
inline void install(const SlotMapView& map, int32_t slot, int32_t id, int64_t last_use) {
  const int32_t before = map.slot_of[id];
  if (before >= 0) make_empty(map, before);
  drop_owner(map, slot);
  map.slot_of[id] = slot;
  map.owner_of[slot] = id;
  set_use(map, slot, last_use);
  slot_index::update(map, slot);
}

}  // namespace sluice::slot_edit
