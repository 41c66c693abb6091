// Checks a slot map: its invariants, and its index against its arrays.
#include <string>

#include "experts/slot_functions.h"
#include "experts/slot_index.h"

namespace sluice::slot_map {
namespace {

std::string at_slot(int32_t slot, const std::string& fault) {
  return "slot " + std::to_string(slot) + ": " + fault;
}

std::string check_header(const SlotMapView& map) {
  const SlotMapHeader& header = *map.header;
  if (header.slots < 1 || header.slots > map.shape.max_slots) return "number of slots is out of range";
  if (header.floor < 0 || header.floor > header.slots) return "floor is outside the pool";
  if (header.region_running == 0 && header.floor != 0) return "floor is raised without a pass";
  if (header.clock < kFirstClock) return "clock is before its start";
  if (header.turn < 0 || header.turn >= map.shape.layers) return "turn is no layer";
  return {};
}

std::string check_slot(const SlotMapView& map, int32_t slot) {
  const int32_t owner = map.owner_of[slot];
  const int64_t use = map.last_use[slot];
  if (owner < -1 || owner >= map.shape.layers * map.shape.experts) return at_slot(slot, "owner is no expert");
  if (slot >= map.header->slots && owner != -1) return at_slot(slot, "held beyond the end of the pool");
  if (owner >= 0 && map.slot_of[owner] != slot) {
    return at_slot(
        slot, "its owner " + std::to_string(owner) + " is mapped to " + std::to_string(map.slot_of[owner]));
  }
  if ((owner < 0) != (use == kEmptySlot))
    return at_slot(slot, "owner and last use disagree about being empty");
  if (use < 0 || use > map.header->clock) return at_slot(slot, "last use is outside the clock");
  if (map.listed[slot] > 1) return at_slot(slot, "listed is no flag");
  if (map.listed[slot] == 0) return {};
  if (map.header->region_running == 0) return at_slot(slot, "listed without a pass");
  if (owner < 0) return at_slot(slot, "listed and empty");
  if (slot < map.header->floor) return at_slot(slot, "listed below the floor");
  return {};
}

std::string check_experts(const SlotMapView& map) {
  for (int32_t id = 0; id < map.shape.layers * map.shape.experts; ++id) {
    const int32_t slot = map.slot_of[id];
    if (slot < -1 || slot >= map.header->slots) {
      return "expert " + std::to_string(id) + " is mapped outside the pool";
    }
    if (slot >= 0 && map.owner_of[slot] != id) {
      return "expert " + std::to_string(id) + " is mapped to slot " + std::to_string(slot) +
             ", which holds " + std::to_string(map.owner_of[slot]);
    }
  }
  return {};
}

// A tree whose leaf i should be leaf(i).
template <class Leaf>
std::string check_tree(const SlotMapView& map, const int32_t* nodes, int32_t leaves, const Leaf& leaf) {
  for (int32_t i = 0; i < leaves; ++i) {
    if (nodes[leaves + i] != leaf(i)) return "leaf " + std::to_string(i) + " of the index is wrong";
  }
  for (int32_t node = leaves - 1; node >= 1; --node) {
    if (nodes[node] != slot_index::older(map, nodes[2 * node], nodes[2 * node + 1])) {
      return "node " + std::to_string(node) + " of the index names the wrong slot";
    }
  }
  return {};
}

std::string check_index(const SlotMapView& map) {
  const auto if_evictable = [&](int32_t slot) {
    return slot >= 0 && slot_index::is_evictable(map, slot) ? slot : -1;
  };
  int64_t evictable = 0;
  for (int32_t slot = 0; slot < map.shape.max_slots; ++slot) evictable += slot_index::is_evictable(map, slot);
  if (*map.index.evictable != evictable) return "the number of evictable slots is wrong";
  std::string fault = check_tree(map, map.index.order, map.shape.max_slots, if_evictable);
  const int32_t experts = map.shape.experts;
  for (int32_t layer = 0; fault.empty() && map.index.layer_order != nullptr && layer < map.shape.layers;
       ++layer) {
    fault = check_tree(map, map.index.layer_order + int64_t{2} * layer * experts, experts,
                       [&](int32_t expert) { return if_evictable(map.slot_of[map.flat(layer, expert)]); });
    if (!fault.empty()) fault = "MoE layer " + std::to_string(layer) + ": " + fault;
  }
  return fault;
}

}  // namespace

std::string check_integrity(const SlotMapView& map) {
  std::string fault = check_header(map);
  for (int32_t slot = 0; fault.empty() && slot < map.shape.max_slots; ++slot) fault = check_slot(map, slot);
  if (fault.empty()) fault = check_experts(map);
  if (fault.empty()) fault = check_index(map);
  return fault;
}

}  // namespace sluice::slot_map
