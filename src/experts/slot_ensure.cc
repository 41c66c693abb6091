// ensure: the experts that a layer has just routed to become resident.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "experts/slot_edit.h"
#include "experts/slot_functions.h"

namespace sluice::slot_map {
namespace {

using slot_edit::failed;

// What a call asks for, found without changing anything.
struct Demand {
  explicit Demand(int32_t experts) : active(experts), missing(experts) {}
  ExpertSet active, missing;  // missing: of the active ones, those without a slot
  int64_t routed = 0;
  int32_t hits = 0, misses = 0, predicted_used = 0;
  int32_t evictable_hits = 0;  // slots that the index counts and this call keeps
};

SlotStatus read_ids(const SlotMapView& map, int32_t layer, const int32_t* ids, int64_t n, Demand& demand) {
  for (int64_t i = 0; i < n; ++i) {
    if (ids[i] == -1) continue;
    if (ids[i] < 0 || ids[i] >= map.shape.experts) return failed(SlotError::kBadId, layer, ids[i]);
    demand.active.insert(ids[i]);
    ++demand.routed;
  }
  return {};
}

void split(const SlotMapView& map, int32_t layer, Demand& demand) {
  demand.active.for_each([&](int32_t expert) {
    const int32_t slot = map.resident(map.flat(layer, expert));
    if (slot < 0) {
      demand.missing.insert(expert);
      ++demand.misses;
      return;
    }
    ++demand.hits;
    demand.predicted_used += map.last_use[slot] == kPredictedSlot;
    demand.evictable_hits += map.listed[slot] == 0;
  });
}

// The `fetches` missing experts that were active most recently, ties to the lower id.
ExpertSet most_recent(const SlotMapView& map, int32_t layer, const Demand& demand, int32_t fetches) {
  if (fetches == demand.misses) return demand.missing;
  std::array<int32_t, kMaxExperts> missing;
  int32_t count = 0;
  demand.missing.for_each([&](int32_t expert) { missing[static_cast<size_t>(count++)] = expert; });
  const int64_t* recency = map.recency + map.flat(layer, 0);
  std::nth_element(
      missing.begin(), missing.begin() + fetches, missing.begin() + count,
      [&](int32_t a, int32_t b) { return recency[a] != recency[b] ? recency[a] > recency[b] : a < b; });
  ExpertSet chosen(map.shape.experts);
  for (int32_t i = 0; i < fetches; ++i) chosen.insert(missing[static_cast<size_t>(i)]);
  return chosen;
}

void fetch(const SlotMapView& map, int32_t layer, const ExpertSet& experts, const CopyPlan& plan) {
  experts.for_each([&](int32_t expert) {
    const int32_t slot = slot_index::victim(map);
    SLUICE_CHECK(slot >= 0);  // counted before
    slot_edit::install(map, slot, map.flat(layer, expert), map.header->clock);
    slot_edit::append(plan, slot, expert);
  });
}

// Ids become slots; returns how many of them were hits. cpu_ids may be null.
int64_t rewrite(const SlotMapView& map, int32_t layer, int32_t* ids, int64_t n, const Demand& demand,
                const ExpertSet& fetched, int32_t* cpu_ids) {
  int64_t routed_hits = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int32_t expert = ids[i];
    const bool missing = expert >= 0 && demand.missing.contains(expert);
    const bool on_cpu = missing && !fetched.contains(expert);
    routed_hits += expert >= 0 && !missing;
    if (cpu_ids != nullptr) cpu_ids[i] = on_cpu ? expert : -1;
    ids[i] = expert < 0 || on_cpu ? -1 : map.slot_of[map.flat(layer, expert)];
  }
  return routed_hits;
}

void count(LayerCounters& counters, const Demand& demand, int64_t routed_hits, int32_t fetches) {
  ++counters.calls;
  counters.routed += static_cast<uint64_t>(demand.routed);
  counters.routed_hits += static_cast<uint64_t>(routed_hits);
  counters.distinct += static_cast<uint64_t>(demand.hits + demand.misses);
  counters.hits += static_cast<uint64_t>(demand.hits);
  counters.misses += static_cast<uint64_t>(demand.misses);
  counters.fetched += static_cast<uint64_t>(fetches);
  counters.stalls += fetches > 0;
  counters.predicted_used += static_cast<uint64_t>(demand.predicted_used);
}

SlotStatus ensure_some(const SlotMapView& map, int32_t layer, int32_t* ids, int64_t n, const FetchRule* rule,
                       int32_t* cpu_ids, const CopyPlan& plan) {
  *plan.count = 0;
  if (!slot_edit::has_layer(map, layer)) return failed(SlotError::kBadLayer, -1, layer);
  Demand demand(map.shape.experts);
  if (const SlotStatus status = read_ids(map, layer, ids, n, demand); !status.ok()) return status;
  split(map, layer, demand);
  const int32_t fetches = rule == nullptr ? demand.misses : rule->fetches(demand.misses);
  const int64_t free = *map.index.evictable - demand.evictable_hits;
  if (fetches > free) return failed(SlotError::kNoEvictableSlot, layer, fetches - free);
  if (fetches > plan.capacity) return failed(SlotError::kPlanFull, layer, fetches);

  const ExpertSet fetched = most_recent(map, layer, demand, fetches);
  slot_edit::begin_turn(map, layer);
  demand.active.for_each([&](int32_t expert) {
    map.recency[map.flat(layer, expert)] = map.header->clock;
    if (!demand.missing.contains(expert)) slot_edit::stamp(map, map.slot_of[map.flat(layer, expert)]);
  });
  fetch(map, layer, fetched, plan);
  const int64_t routed_hits = rewrite(map, layer, ids, n, demand, fetched, cpu_ids);
  count(map.counters[layer], demand, routed_hits, fetches);
  return {};
}

}  // namespace

SlotStatus ensure(const SlotMapView& map, int32_t layer, int32_t* ids, int64_t n, const CopyPlan& plan) {
  return ensure_some(map, layer, ids, n, nullptr, nullptr, plan);
}

SlotStatus ensure_capped(const SlotMapView& map, int32_t layer, int32_t* ids, int64_t n,
                         const FetchRule& rule, int32_t* cpu_ids, const CopyPlan& plan) {
  return ensure_some(map, layer, ids, n, &rule, cpu_ids, plan);
}

}  // namespace sluice::slot_map
