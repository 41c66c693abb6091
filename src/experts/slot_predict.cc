// Slots for experts that a later layer will probably want.
#include <array>

#include "experts/slot_edit.h"
#include "experts/slot_functions.h"

namespace sluice::slot_map {
namespace {

using slot_edit::failed;

struct Wishes {
  explicit Wishes(int32_t experts) : named(experts) {}
  ExpertSet named;
  std::array<int32_t, kMaxExperts> absent;  // the first `count`, in order of preference
  int32_t count = 0;
};

SlotStatus read_wishes(const SlotMapView& map, int32_t layer, const int32_t* ids, int64_t n, int32_t most,
                       Wishes& wishes) {
  for (int64_t i = 0; i < n; ++i) {
    if (ids[i] == -1) continue;
    if (ids[i] < 0 || ids[i] >= map.shape.experts) return failed(SlotError::kBadId, layer, ids[i]);
    if (wishes.named.contains(ids[i])) continue;
    wishes.named.insert(ids[i]);
    if (map.resident(map.flat(layer, ids[i])) < 0 && wishes.count < most) {
      wishes.absent[static_cast<size_t>(wishes.count++)] = ids[i];
    }
  }
  return {};
}

// Takes a slot out of the search, or puts it back. The list flag is borrowed for it.
void hide(const SlotMapView& map, int32_t slot) {
  map.listed[slot] = 1;
  slot_index::update(map, slot);
}
void show(const SlotMapView& map, int32_t slot) {
  map.listed[slot] = 0;
  slot_index::update(map, slot);
}

}  // namespace

SlotStatus install_predictions(const SlotMapView& map, int32_t layer, const int32_t* ids, int64_t n,
                               int32_t most, const CopyPlan& plan) {
  *plan.count = 0;
  if (!slot_edit::has_layer(map, layer)) return failed(SlotError::kBadLayer, -1, layer);
  Wishes wishes(map.shape.experts);
  if (const SlotStatus status = read_wishes(map, layer, ids, n, most, wishes); !status.ok()) return status;
  if (wishes.count > plan.capacity) return failed(SlotError::kPlanFull, layer, wishes.count);

  // Neither a slot filled here nor one of an expert named here may be found again: hidden until the end.
  std::array<int32_t, kMaxExperts> kept;
  int32_t kept_count = 0;
  while (*plan.count < wishes.count) {
    const int32_t slot = slot_index::victim(map);
    if (slot < 0) break;
    const int32_t owner = map.owner_of[slot];
    const bool named =
        owner >= 0 && owner / map.shape.experts == layer && wishes.named.contains(owner % map.shape.experts);
    hide(map, slot);
    if (named) {
      kept[static_cast<size_t>(kept_count++)] = slot;
      continue;
    }
    const int32_t expert = wishes.absent[static_cast<size_t>(*plan.count)];
    slot_edit::install(map, slot, map.flat(layer, expert), kPredictedSlot);
    slot_edit::append(plan, slot, expert);
  }
  for (int32_t i = 0; i < *plan.count; ++i) show(map, plan.dst_slot[i]);
  for (int32_t i = 0; i < kept_count; ++i) show(map, kept[static_cast<size_t>(i)]);
  map.counters[layer].predicted += static_cast<uint64_t>(*plan.count);
  return {};
}

}  // namespace sluice::slot_map
