// What a pool holds over its life: reset, resize, warm start.
#include <algorithm>

#include "experts/slot_edit.h"
#include "experts/slot_functions.h"

namespace sluice::slot_map {

using slot_edit::failed;

SlotStatus reset(const SlotMapView& map, int32_t slots) {
  const SlotMapShape& shape = map.shape;
  if (slots < 1 || slots > shape.max_slots) return failed(SlotError::kBadSlotCount, -1, slots);
  const int64_t ids = int64_t{shape.layers} * shape.experts;
  *map.header = {.clock = kFirstClock,
                 .step = 0,
                 .slots = slots,
                 .floor = 0,
                 .region_running = 0,
                 .turn = shape.layers - 1,
                 .status = {}};
  std::fill_n(map.counters, shape.layers, LayerCounters{});
  std::fill_n(map.last_use, shape.max_slots, kEmptySlot);
  std::fill_n(map.used_step, shape.max_slots, int64_t{0});
  std::fill_n(map.recency, ids, -1);
  std::fill_n(map.slot_of, ids, -1);
  std::fill_n(map.owner_of, shape.max_slots, -1);
  std::fill_n(map.listed, shape.max_slots, uint8_t{0});
  slot_index::rebuild(map);
  return {};
}

SlotStatus resize(const SlotMapView& map, int32_t slots, int32_t min_slots) {
  if (slots < std::max(min_slots, 1) || slots > map.shape.max_slots) {
    return failed(SlotError::kBadSlotCount, -1, slots);
  }
  if (map.header->region_running != 0) return failed(SlotError::kRegionRunning, -1, map.header->floor);
  for (int32_t slot = slots; slot < map.header->slots; ++slot) {
    slot_edit::drop_owner(map, slot);
    slot_edit::set_use(map, slot, kEmptySlot);
  }
  map.header->slots = slots;
  slot_index::rebuild(map);
  return {};
}

SlotStatus fill(const SlotMapView& map, const int32_t* ids, int64_t n, const CopyPlan& plan) {
  *plan.count = 0;
  const int32_t all = map.shape.layers * map.shape.experts;
  for (int64_t i = 0; i < n; ++i) {
    if (ids[i] < -1 || ids[i] >= all) return failed(SlotError::kBadId, -1, ids[i]);
  }
  if (n > plan.capacity) return failed(SlotError::kPlanFull, -1, n);
  for (int64_t i = 0; i < n; ++i) {
    if (ids[i] == -1 || map.resident(ids[i]) >= 0) continue;
    const int32_t slot = slot_index::victim(map);
    if (slot < 0 || map.last_use[slot] != kEmptySlot) break;
    slot_edit::install(map, slot, ids[i], kFirstClock);
    slot_edit::append(plan, slot, ids[i]);
  }
  return {};
}

std::vector<Resident> save_residency(const SlotMapView& map) {
  std::vector<int32_t> held;
  for (int32_t slot = map.header->floor; slot < map.header->slots; ++slot) {
    if (map.owner_of[slot] >= 0) held.push_back(slot);
  }
  std::sort(held.begin(), held.end(),
            [&](int32_t a, int32_t b) { return slot_index::older(map, a, b) == a && a != b; });
  std::vector<Resident> residents;
  residents.reserve(held.size());
  for (const int32_t slot : held) {
    residents.push_back({map.owner_of[slot] / map.shape.experts, map.owner_of[slot] % map.shape.experts});
  }
  return residents;
}

}  // namespace sluice::slot_map
