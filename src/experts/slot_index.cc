// Tournament trees over the slots of a map.
#include "experts/slot_index.h"

namespace sluice::slot_index {
namespace {

// Repairs the nodes above leaf `node`, which has changed and names `slot` or named it before.
void climb(const SlotMapView& map, int32_t* nodes, int32_t node, int32_t slot) {
  while (node > 1) {
    node >>= 1;
    const int32_t winner = older(map, nodes[2 * node], nodes[2 * node + 1]);
    if (nodes[node] == winner && winner != slot) return;
    nodes[node] = winner;
  }
}

// Leaf of a layer's tree: the slot if it can be evicted.
void update_layer(const SlotMapView& map, int32_t id, int32_t slot) {
  const int32_t experts = map.shape.experts;
  int32_t* nodes = map.index.layer_order + int64_t{2} * (id / experts) * experts;
  const int32_t leaf = experts + id % experts;
  nodes[leaf] = slot >= 0 && is_evictable(map, slot) ? slot : -1;
  climb(map, nodes, leaf, slot);
}

void set_leaf(const SlotMapView& map, int32_t slot) {
  int32_t& leaf = map.index.order[map.shape.max_slots + slot];
  const int32_t now = is_evictable(map, slot) ? slot : -1;
  *map.index.evictable += (now >= 0) - (leaf >= 0);
  leaf = now;
}

bool scored(const SlotMapView& map) { return map.shape.policy == SlotPolicy::kScored; }

int32_t stalest(const SlotMapView& map) {
  int32_t best = -1;
  int64_t best_score = 0;
  for (int32_t layer = 0; layer < map.shape.layers; ++layer) {
    const int32_t slot = map.index.layer_order[int64_t{2} * layer * map.shape.experts + 1];
    if (slot < 0 || map.last_use[slot] == map.header->clock) continue;
    const int64_t score = staleness(map, slot);
    if (best < 0 || score > best_score || (score == best_score && older(map, slot, best) == slot)) {
      best = slot;
      best_score = score;
    }
  }
  return best;
}

}  // namespace

int32_t victim(const SlotMapView& map) {
  const int32_t oldest = map.index.order[1];
  if (oldest < 0 || map.last_use[oldest] == map.header->clock) return -1;
  if (!scored(map) || map.last_use[oldest] <= kPredictedSlot) return oldest;
  return stalest(map);
}

void update(const SlotMapView& map, int32_t slot) {
  set_leaf(map, slot);
  climb(map, map.index.order, map.shape.max_slots + slot, slot);
  if (scored(map) && map.owner_of[slot] >= 0) update_layer(map, map.owner_of[slot], slot);
}

void update_range(const SlotMapView& map, int32_t first, int32_t count) {
  if (count <= 0) return;
  for (int32_t slot = first; slot < first + count; ++slot) set_leaf(map, slot);
  int32_t* nodes = map.index.order;
  int32_t low = map.shape.max_slots + first, high = map.shape.max_slots + first + count - 1;
  // Leaves may lie on two levels; a node is repaired again once its deeper leaves have arrived. Root 1 ends
  // it.
  while (high > 1) {
    low = low > 1 ? low >> 1 : 1;
    high >>= 1;
    for (int32_t node = high; node >= low; --node) {
      nodes[node] = older(map, nodes[2 * node], nodes[2 * node + 1]);
    }
  }
  if (!scored(map)) return;
  for (int32_t slot = first; slot < first + count; ++slot) {
    if (map.owner_of[slot] >= 0) update_layer(map, map.owner_of[slot], slot);
  }
}

void forget(const SlotMapView& map, int32_t id) {
  if (scored(map)) update_layer(map, id, -1);
}

void rebuild(const SlotMapView& map) {
  const int32_t slots = map.shape.max_slots;
  *map.index.evictable = 0;
  for (int32_t slot = 0; slot < slots; ++slot) {
    map.index.order[slots + slot] = -1;
    set_leaf(map, slot);
  }
  for (int32_t node = slots - 1; node >= 1; --node) {
    map.index.order[node] = older(map, map.index.order[2 * node], map.index.order[2 * node + 1]);
  }
  if (!scored(map)) return;
  const int32_t experts = map.shape.experts;
  for (int32_t layer = 0; layer < map.shape.layers; ++layer) {
    int32_t* nodes = map.index.layer_order + int64_t{2} * layer * experts;
    for (int32_t expert = 0; expert < experts; ++expert) {
      const int32_t slot = map.slot_of[map.flat(layer, expert)];
      nodes[experts + expert] = slot >= 0 && is_evictable(map, slot) ? slot : -1;
    }
    for (int32_t node = experts - 1; node >= 1; --node) {
      nodes[node] = older(map, nodes[2 * node], nodes[2 * node + 1]);
    }
  }
}

}  // namespace sluice::slot_index
