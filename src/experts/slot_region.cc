// The part of the pool that a prefill pass borrows.
#include <bitset>

#include "experts/slot_edit.h"
#include "experts/slot_functions.h"

namespace sluice::slot_map {
namespace {

using slot_edit::failed;

bool is_range(const SlotMapView& map, int32_t first, int32_t count) {
  return first >= 0 && count >= 0 && first <= map.header->slots && count <= map.header->slots - first;
}

// Index left to the caller, who updates the range.
void clear_range(const SlotMapView& map, int32_t first, int32_t count) {
  for (int32_t slot = first; slot < first + count; ++slot) {
    slot_edit::drop_owner(map, slot);
    slot_edit::set_use(map, slot, kEmptySlot);
  }
}

// The first listed slot of the range that does not hold an expert of `layer`, -1 if none.
int32_t find_listed(const SlotMapView& map, int32_t first, int32_t count, int32_t layer) {
  for (int32_t slot = first; slot < first + count; ++slot) {
    if (map.listed[slot] != 0 && map.owner_of[slot] / map.shape.experts != layer) return slot;
  }
  return -1;
}

struct Source {
  int32_t slot = -1;  // the expert's slot in the region, -1 none
  bool known = true;  // false: the caller named a slot outside the region
};

Source find_source(const SlotMapView& map, int32_t layer, int32_t expert, const int32_t* region_slot_of) {
  if (region_slot_of == nullptr) return {map.slot_of[map.flat(layer, expert)]};
  const int32_t slot = region_slot_of[expert];
  return {slot, slot >= -1 && slot < map.header->floor};
}

}  // namespace

SlotStatus invalidate(const SlotMapView& map, int32_t first_slot, int32_t count) {
  if (!is_range(map, first_slot, count)) return failed(SlotError::kBadRange, -1, first_slot);
  const int32_t needed = find_listed(map, first_slot, count, -1);
  if (needed >= 0) return failed(SlotError::kListedSlot, -1, needed);
  clear_range(map, first_slot, count);
  slot_index::update_range(map, first_slot, count);
  return {};
}

SlotStatus begin_region(const SlotMapView& map, int32_t region_slots, const int32_t* layers, int64_t n) {
  SlotMapHeader& header = *map.header;
  if (header.region_running != 0) return failed(SlotError::kRegionRunning, -1, header.floor);
  if (!is_range(map, 0, region_slots)) return failed(SlotError::kBadRange, -1, region_slots);
  std::bitset<kMaxMoeLayers> wanted;
  if (layers == nullptr) wanted.set();
  for (int64_t i = 0; layers != nullptr && i < n; ++i) {
    if (!slot_edit::has_layer(map, layers[i])) return failed(SlotError::kBadLayer, -1, layers[i]);
    wanted.set(static_cast<size_t>(layers[i]));
  }
  clear_range(map, 0, region_slots);
  header.floor = region_slots;
  header.region_running = 1;
  for (int32_t slot = region_slots; slot < header.slots; ++slot) {
    const int32_t owner = map.owner_of[slot];
    map.listed[slot] = owner >= 0 && wanted.test(static_cast<size_t>(owner / map.shape.experts));
  }
  slot_index::rebuild(map);
  return {};
}

SlotStatus leave_evictable(const SlotMapView& map, int32_t count) {
  for (int64_t missing = count - *map.index.evictable; missing > 0; --missing) {
    int32_t oldest = -1;
    for (int32_t slot = map.header->floor; slot < map.header->slots; ++slot) {
      if (map.listed[slot] != 0) oldest = slot_index::older(map, oldest, slot);
    }
    if (oldest < 0) break;
    map.listed[oldest] = 0;
    slot_index::update(map, oldest);
  }
  return {};
}

SlotStatus release_layer(const SlotMapView& map, int32_t layer) {
  if (!slot_edit::has_layer(map, layer)) return failed(SlotError::kBadLayer, -1, layer);
  for (int32_t expert = 0; expert < map.shape.experts; ++expert) {
    const int32_t slot = map.slot_of[map.flat(layer, expert)];
    if (slot < 0 || map.listed[slot] == 0) continue;
    map.listed[slot] = 0;
    slot_index::update(map, slot);
  }
  return {};
}

SlotStatus end_region(const SlotMapView& map) {
  SlotMapHeader& header = *map.header;
  if (header.region_running == 0) return {};
  clear_range(map, 0, header.floor);
  for (int32_t slot = 0; slot < header.slots; ++slot) map.listed[slot] = 0;
  header.floor = 0;
  header.region_running = 0;
  slot_index::rebuild(map);
  return {};
}

SlotStatus adopt(const SlotMapView& map, int32_t layer, const int32_t* ids, int64_t n,
                 const int32_t* region_slot_of, const CopyPlan& plan) {
  *plan.count = 0;
  if (!slot_edit::has_layer(map, layer)) return failed(SlotError::kBadLayer, -1, layer);
  ExpertSet active(map.shape.experts);
  for (int64_t i = 0; i < n; ++i) {
    if (ids[i] == -1) continue;
    if (ids[i] < 0 || ids[i] >= map.shape.experts) return failed(SlotError::kBadId, layer, ids[i]);
    active.insert(ids[i]);
  }
  ExpertSet moving(map.shape.experts);
  int32_t moves = 0;
  SlotStatus bad;
  active.for_each([&](int32_t expert) {
    if (map.resident(map.flat(layer, expert)) >= 0) return;
    const Source source = find_source(map, layer, expert, region_slot_of);
    if (!source.known && bad.ok()) bad = failed(SlotError::kBadRange, layer, source.slot);
    if (!source.known || source.slot < 0) return;
    moving.insert(expert);
    ++moves;
  });
  if (!bad.ok()) return bad;
  if (moves > plan.capacity) return failed(SlotError::kPlanFull, layer, moves);

  ++map.header->clock;
  active.for_each([&](int32_t expert) {
    const int32_t slot = map.resident(map.flat(layer, expert));
    if (slot >= 0) slot_edit::stamp(map, slot);
  });
  moving.for_each([&](int32_t expert) {
    const int32_t slot = slot_index::victim(map);
    if (slot < 0) return;
    const int32_t source = find_source(map, layer, expert, region_slot_of).slot;
    slot_edit::install(map, slot, map.flat(layer, expert), map.header->clock);
    slot_edit::append(plan, slot, source);
  });
  return {};
}

SlotStatus materialise(const SlotMapView& map, int32_t layer, int32_t first_slot, const CopyPlan& plan) {
  *plan.count = 0;
  const int32_t experts = map.shape.experts;
  if (!slot_edit::has_layer(map, layer)) return failed(SlotError::kBadLayer, -1, layer);
  if (!is_range(map, first_slot, experts)) return failed(SlotError::kBadRange, layer, first_slot);
  const int32_t needed = find_listed(map, first_slot, experts, layer);
  if (needed >= 0) return failed(SlotError::kListedSlot, layer, needed);
  if (experts > plan.capacity) return failed(SlotError::kPlanFull, layer, experts);

  slot_edit::begin_turn(map, layer);
  for (int32_t expert = 0; expert < experts; ++expert) {
    const int32_t slot = map.slot_of[map.flat(layer, expert)];
    if (slot < 0) continue;
    map.listed[slot] = 0;
    slot_edit::make_empty(map, slot);
  }
  clear_range(map, first_slot, experts);
  for (int32_t expert = 0; expert < experts; ++expert) {
    const int32_t slot = first_slot + expert;
    map.slot_of[map.flat(layer, expert)] = slot;
    map.owner_of[slot] = map.flat(layer, expert);
    slot_edit::set_use(map, slot, map.header->clock);
    slot_edit::append(plan, slot, expert);
  }
  slot_index::update_range(map, first_slot, experts);
  return {};
}

}  // namespace sluice::slot_map
