// Slot map functions by scanning. Slow and short on purpose; no code is shared with the fast versions.
#include "experts/slot_map_ref.h"

#include <algorithm>
#include <set>
#include <vector>

namespace sluice::slot_map_ref {
namespace {

using Slots = std::set<int32_t>;

int32_t layer_of(const SlotMapView& map, int32_t slot) { return map.owner_of[slot] / map.shape.experts; }

bool bad_layer(const SlotMapView& map, int32_t layer) { return layer < 0 || layer >= map.shape.layers; }

SlotStatus fail(const CopyPlan& plan, SlotError code, int32_t layer, int64_t detail) {
  *plan.count = 0;
  return {code, layer, detail};
}

// Whether `a` goes before `b`; both can be evicted.
bool goes_first(const SlotMapView& map, int32_t a, int32_t b) {
  const int64_t use_a = map.last_use[a], use_b = map.last_use[b];
  const bool by_score =
      map.shape.policy == SlotPolicy::kScored && use_a >= kFirstClock && use_b >= kFirstClock;
  if (by_score) {
    const int64_t score_a = staleness(map, a), score_b = staleness(map, b);
    if (score_a != score_b) return score_a > score_b;
  }
  return use_a != use_b ? use_a < use_b : a < b;
}

// Slots that may be given away now, outside `kept`.
std::vector<int32_t> evictable(const SlotMapView& map, const Slots& kept) {
  std::vector<int32_t> slots;
  for (int32_t s = map.header->floor; s < map.header->slots; ++s) {
    if (map.last_use[s] != map.header->clock && map.listed[s] == 0 && kept.count(s) == 0) slots.push_back(s);
  }
  return slots;
}

int32_t victim(const SlotMapView& map, const Slots& kept = {}) {
  const std::vector<int32_t> slots = evictable(map, kept);
  if (slots.empty()) return -1;
  return *std::min_element(slots.begin(), slots.end(),
                           [&](int32_t a, int32_t b) { return goes_first(map, a, b); });
}

void empty_slot(const SlotMapView& map, int32_t slot) {
  if (map.owner_of[slot] >= 0) map.slot_of[map.owner_of[slot]] = -1;
  map.owner_of[slot] = -1;
  map.last_use[slot] = kEmptySlot;
  map.used_step[slot] = 0;
}

void give(const SlotMapView& map, int32_t slot, int32_t id, int64_t last_use) {
  if (map.slot_of[id] >= 0) empty_slot(map, map.slot_of[id]);
  empty_slot(map, slot);
  map.slot_of[id] = slot;
  map.owner_of[slot] = id;
  map.last_use[slot] = last_use;
  if (last_use == map.header->clock) map.used_step[slot] = map.header->step;
}

void touch(const SlotMapView& map, int32_t slot) {
  map.last_use[slot] = map.header->clock;
  map.used_step[slot] = map.header->step;
}

void add(const CopyPlan& plan, int32_t slot, int32_t row) {
  plan.dst_slot[*plan.count] = slot;
  plan.src_row[*plan.count] = row;
  ++*plan.count;
}

// The first id that is neither padding nor an expert; -1 if there is none.
int64_t first_bad_id(const SlotMapView& map, const int32_t* ids, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if (ids[i] < -1 || ids[i] >= map.shape.experts) return i;
  }
  return -1;
}

std::set<int32_t> distinct(const int32_t* ids, int64_t n) {
  std::set<int32_t> experts(ids, ids + n);
  experts.erase(-1);
  return experts;
}

bool is_range(const SlotMapView& map, int64_t first, int64_t count) {
  return first >= 0 && count >= 0 && first + count <= map.header->slots;
}

SlotStatus ensure_some(const SlotMapView& map, int32_t layer, int32_t* ids, int64_t n, const FetchRule* rule,
                       int32_t* cpu_ids, const CopyPlan& plan) {
  *plan.count = 0;
  if (bad_layer(map, layer)) return fail(plan, SlotError::kBadLayer, -1, layer);
  if (const int64_t i = first_bad_id(map, ids, n); i >= 0)
    return fail(plan, SlotError::kBadId, layer, ids[i]);
  const std::set<int32_t> active = distinct(ids, n);
  std::vector<int32_t> missing;
  Slots hits;
  for (const int32_t e : active) {
    const int32_t slot = map.resident(map.flat(layer, e));
    if (slot >= 0) {
      hits.insert(slot);
    } else {
      missing.push_back(e);
    }
  }
  const auto misses = static_cast<int32_t>(missing.size());
  const int32_t fetches = rule == nullptr ? misses : rule->fetches(misses);
  ++map.header->clock;
  const auto free = static_cast<int64_t>(evictable(map, hits).size());
  if (fetches > free || fetches > plan.capacity) {
    --map.header->clock;
    return fetches > free ? fail(plan, SlotError::kNoEvictableSlot, layer, fetches - free)
                          : fail(plan, SlotError::kPlanFull, layer, fetches);
  }
  if (layer <= map.header->turn) ++map.header->step;
  map.header->turn = layer;
  LayerCounters& counters = map.counters[layer];
  for (const int32_t slot : hits) {
    if (map.last_use[slot] == kPredictedSlot) ++counters.predicted_used;
    touch(map, slot);
  }
  std::stable_sort(missing.begin(), missing.end(), [&](int32_t a, int32_t b) {
    return map.recency[map.flat(layer, a)] > map.recency[map.flat(layer, b)];
  });
  const std::set<int32_t> fetched(missing.begin(), missing.begin() + fetches);
  for (const int32_t e : active) map.recency[map.flat(layer, e)] = map.header->clock;
  for (const int32_t e : fetched) {
    const int32_t slot = victim(map);
    give(map, slot, map.flat(layer, e), map.header->clock);
    add(plan, slot, e);
  }
  ++counters.calls;
  counters.distinct += active.size();
  counters.hits += hits.size();
  counters.misses += missing.size();
  counters.fetched += fetched.size();
  counters.stalls += fetched.empty() ? 0 : 1;
  for (int64_t i = 0; i < n; ++i) {
    const int32_t e = ids[i];
    if (cpu_ids != nullptr) cpu_ids[i] = -1;
    if (e == -1) continue;
    ++counters.routed;
    const bool missed = std::count(missing.begin(), missing.end(), e) > 0;
    if (!missed) ++counters.routed_hits;
    if (missed && fetched.count(e) == 0) {
      cpu_ids[i] = e;
      ids[i] = -1;
    } else {
      ids[i] = map.slot_of[map.flat(layer, e)];
    }
  }
  return {};
}

}  // namespace

SlotStatus reset(const SlotMapView& map, int32_t slots) {
  if (slots < 1 || slots > map.shape.max_slots) return {SlotError::kBadSlotCount, -1, slots};
  *map.header = {};
  map.header->clock = kFirstClock;
  map.header->slots = slots;
  map.header->turn = map.shape.layers - 1;
  for (int32_t layer = 0; layer < map.shape.layers; ++layer) map.counters[layer] = {};
  for (int32_t id = 0; id < map.shape.layers * map.shape.experts; ++id)
    map.slot_of[id] = -1, map.recency[id] = -1;
  for (int32_t s = 0; s < map.shape.max_slots; ++s) {
    map.owner_of[s] = -1;
    map.last_use[s] = kEmptySlot;
    map.used_step[s] = 0;
    map.listed[s] = 0;
  }
  return {};
}

SlotStatus ensure(const SlotMapView& map, int32_t layer, int32_t* ids, int64_t n, const CopyPlan& plan) {
  return ensure_some(map, layer, ids, n, nullptr, nullptr, plan);
}

SlotStatus ensure_capped(const SlotMapView& map, int32_t layer, int32_t* ids, int64_t n,
                         const FetchRule& rule, int32_t* cpu_ids, const CopyPlan& plan) {
  return ensure_some(map, layer, ids, n, &rule, cpu_ids, plan);
}

SlotStatus install_predictions(const SlotMapView& map, int32_t layer, const int32_t* ids, int64_t n,
                               int32_t most, const CopyPlan& plan) {
  *plan.count = 0;
  if (bad_layer(map, layer)) return fail(plan, SlotError::kBadLayer, -1, layer);
  if (const int64_t i = first_bad_id(map, ids, n); i >= 0)
    return fail(plan, SlotError::kBadId, layer, ids[i]);
  std::vector<int32_t> wanted;
  Slots kept;
  for (int64_t i = 0; i < n; ++i) {
    if (ids[i] == -1) continue;
    const int32_t slot = map.resident(map.flat(layer, ids[i]));
    if (slot >= 0) kept.insert(slot);
    const bool repeated = std::count(wanted.begin(), wanted.end(), ids[i]) > 0;
    if (slot < 0 && !repeated && static_cast<int32_t>(wanted.size()) < most) wanted.push_back(ids[i]);
  }
  const auto entries = static_cast<int32_t>(wanted.size());
  if (entries > plan.capacity) return fail(plan, SlotError::kPlanFull, layer, entries);
  for (const int32_t e : wanted) {
    const int32_t slot = victim(map, kept);
    if (slot < 0) break;
    give(map, slot, map.flat(layer, e), kPredictedSlot);
    kept.insert(slot);
    add(plan, slot, e);
    ++map.counters[layer].predicted;
  }
  return {};
}

SlotStatus invalidate(const SlotMapView& map, int32_t first_slot, int32_t count) {
  if (!is_range(map, first_slot, count)) return {SlotError::kBadRange, -1, first_slot};
  for (int32_t s = first_slot; s < first_slot + count; ++s) {
    if (map.listed[s] != 0) return {SlotError::kListedSlot, -1, s};
  }
  for (int32_t s = first_slot; s < first_slot + count; ++s) empty_slot(map, s);
  return {};
}

SlotStatus begin_region(const SlotMapView& map, int32_t region_slots, const int32_t* layers, int64_t n) {
  if (map.header->region_running != 0) return {SlotError::kRegionRunning, -1, map.header->floor};
  if (!is_range(map, 0, region_slots)) return {SlotError::kBadRange, -1, region_slots};
  std::set<int32_t> wanted;
  for (int32_t layer = 0; layers == nullptr && layer < map.shape.layers; ++layer) wanted.insert(layer);
  for (int64_t i = 0; layers != nullptr && i < n; ++i) {
    if (bad_layer(map, layers[i])) return {SlotError::kBadLayer, -1, layers[i]};
    wanted.insert(layers[i]);
  }
  for (int32_t s = 0; s < region_slots; ++s) empty_slot(map, s);
  map.header->floor = region_slots;
  map.header->region_running = 1;
  for (int32_t s = region_slots; s < map.header->slots; ++s) {
    map.listed[s] = map.owner_of[s] >= 0 && wanted.count(layer_of(map, s)) > 0;
  }
  return {};
}

SlotStatus leave_evictable(const SlotMapView& map, int32_t count) {
  std::vector<std::pair<int64_t, int32_t>> listed;
  int32_t free = 0;
  for (int32_t s = map.header->floor; s < map.header->slots; ++s) {
    if (map.listed[s] != 0) listed.emplace_back(map.last_use[s], s);
    free += map.listed[s] == 0;
  }
  std::sort(listed.begin(), listed.end());
  for (const auto& [use, s] : listed) {
    if (free >= count) break;
    map.listed[s] = 0;
    ++free;
  }
  return {};
}

SlotStatus release_layer(const SlotMapView& map, int32_t layer) {
  if (bad_layer(map, layer)) return {SlotError::kBadLayer, -1, layer};
  for (int32_t s = 0; s < map.header->slots; ++s) {
    if (map.owner_of[s] >= 0 && layer_of(map, s) == layer) map.listed[s] = 0;
  }
  return {};
}

SlotStatus end_region(const SlotMapView& map) {
  if (map.header->region_running == 0) return {};
  for (int32_t s = 0; s < map.header->floor; ++s) empty_slot(map, s);
  for (int32_t s = 0; s < map.header->slots; ++s) map.listed[s] = 0;
  map.header->floor = 0;
  map.header->region_running = 0;
  return {};
}

SlotStatus adopt(const SlotMapView& map, int32_t layer, const int32_t* ids, int64_t n,
                 const int32_t* region_slot_of, const CopyPlan& plan) {
  *plan.count = 0;
  if (bad_layer(map, layer)) return fail(plan, SlotError::kBadLayer, -1, layer);
  if (const int64_t i = first_bad_id(map, ids, n); i >= 0)
    return fail(plan, SlotError::kBadId, layer, ids[i]);
  std::vector<int32_t> moving, sources, stamped;
  for (const int32_t e : distinct(ids, n)) {
    const int32_t id = map.flat(layer, e);
    if (map.resident(id) >= 0) {
      stamped.push_back(map.resident(id));
      continue;
    }
    const int32_t source = region_slot_of == nullptr ? map.slot_of[id] : region_slot_of[e];
    if (source < -1 || source >= map.header->floor) {
      if (source != -1) return fail(plan, SlotError::kBadRange, layer, source);
    }
    if (source == -1) continue;
    moving.push_back(e);
    sources.push_back(source);
  }
  const auto moves = static_cast<int32_t>(moving.size());
  if (moves > plan.capacity) return fail(plan, SlotError::kPlanFull, layer, moves);
  ++map.header->clock;
  for (const int32_t slot : stamped) touch(map, slot);
  for (size_t i = 0; i < moving.size(); ++i) {
    const int32_t slot = victim(map);
    if (slot < 0) break;
    give(map, slot, map.flat(layer, moving[i]), map.header->clock);
    add(plan, slot, sources[i]);
  }
  return {};
}

SlotStatus materialise(const SlotMapView& map, int32_t layer, int32_t first_slot, const CopyPlan& plan) {
  *plan.count = 0;
  const int32_t experts = map.shape.experts;
  if (bad_layer(map, layer)) return fail(plan, SlotError::kBadLayer, -1, layer);
  if (!is_range(map, first_slot, experts)) return fail(plan, SlotError::kBadRange, layer, first_slot);
  for (int32_t s = first_slot; s < first_slot + experts; ++s) {
    if (map.listed[s] != 0 && layer_of(map, s) != layer) return fail(plan, SlotError::kListedSlot, layer, s);
  }
  if (experts > plan.capacity) return fail(plan, SlotError::kPlanFull, layer, experts);
  ++map.header->clock;
  if (layer <= map.header->turn) ++map.header->step;
  map.header->turn = layer;
  for (int32_t s = 0; s < map.header->slots; ++s) {
    if (map.owner_of[s] < 0 || layer_of(map, s) != layer) continue;
    empty_slot(map, s);
    map.listed[s] = 0;
  }
  for (int32_t e = 0; e < experts; ++e) {
    give(map, first_slot + e, map.flat(layer, e), map.header->clock);
    add(plan, first_slot + e, e);
  }
  return {};
}

SlotStatus resize(const SlotMapView& map, int32_t slots, int32_t min_slots) {
  if (slots < 1 || slots < min_slots || slots > map.shape.max_slots) {
    return {SlotError::kBadSlotCount, -1, slots};
  }
  if (map.header->region_running != 0) return {SlotError::kRegionRunning, -1, map.header->floor};
  for (int32_t s = slots; s < map.header->slots; ++s) empty_slot(map, s);
  map.header->slots = slots;
  return {};
}

SlotStatus fill(const SlotMapView& map, const int32_t* ids, int64_t n, const CopyPlan& plan) {
  *plan.count = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (ids[i] < -1 || ids[i] >= map.shape.layers * map.shape.experts) {
      return fail(plan, SlotError::kBadId, -1, ids[i]);
    }
  }
  if (n > plan.capacity) return fail(plan, SlotError::kPlanFull, -1, n);
  for (int64_t i = 0; i < n; ++i) {
    if (ids[i] == -1 || map.resident(ids[i]) >= 0) continue;
    const int32_t slot = victim(map);
    if (slot < 0 || map.last_use[slot] != kEmptySlot) break;
    give(map, slot, ids[i], kFirstClock);
    add(plan, slot, ids[i]);
  }
  return {};
}

}  // namespace sluice::slot_map_ref
