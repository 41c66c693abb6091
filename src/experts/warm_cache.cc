// Lists of experts on their way to empty slots.
#include "experts/warm_cache.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "experts/gather.h"
#include "experts/pool_of.h"
#include "experts/slot_ops.h"

namespace sluice {
namespace {

int64_t empty_slots(const SlotMapView& map) {
  return std::count(map.last_use + map.header->floor, map.last_use + map.header->slots, kEmptySlot);
}

/// Tells the state what a pool holds once its `filled` lowest empty slots are filled.
void count_residents(ExpertState& state, size_t p, const SlotMapView& map, size_t filled) {
  int64_t all = 0, outside = 0;
  for (int32_t slot = map.header->floor; slot < map.header->slots; ++slot) {
    bool held = map.owner_of[slot] >= 0;
    if (!held && filled > 0) {
      held = true;
      --filled;
    }
    all += held;
    outside += held && slot >= state.pools[p]->ring;
  }
  state.set_residents(p, all, outside);
}

}  // namespace

WarmCache::WarmCache(ExpertState& state) : state_(state), warm_(state.pools.size()) {
  Device& device = state.device;
  for (const auto& pool : state.pools) {
    const int64_t most = pool->most_slots();
    PoolMemory memory;
    memory.snapshot = device.allocate(pool->map.view().core_bytes, "map snapshot", MemoryKind::kPinned);
    memory.host_ids =
        device.allocate(static_cast<size_t>(most) * sizeof(int32_t), "experts to fill", MemoryKind::kPinned);
    memory.ids = device.allocate_array<int32_t>(most, "experts to fill");
    memory.plan = std::make_unique<OwnedPlan>(device, static_cast<int32_t>(most));
    memory_.push_back(std::move(memory));
  }
}

SlotMapView WarmCache::snapshot(size_t pool) const {
  return view_of(memory_[pool].snapshot.data(), state_.pools[pool]->map.shape());
}

void WarmCache::read_maps(std::string_view why) {
  for (size_t p = 0; p < memory_.size(); ++p) {
    const SlotMapView& map = state_.pools[p]->map.view();
    state_.compute.copy("map snapshot", memory_[p].snapshot.data(), map.header, map.core_bytes);
  }
  state_.device.wait(state_.compute, why);
  for (const PoolMemory& memory : memory_) {
    state_.device.host_reads({memory.snapshot.data(), memory.snapshot.bytes()}, "map snapshot");
  }
}

int32_t WarmCache::id_in_pool(const Resident& resident) const {
  if (resident.layer < 0 || resident.layer >= state_.shape.layers || resident.expert < 0 ||
      resident.expert >= state_.shape.experts) {
    throw Error(ErrorCode::kInvalidArgument, "no expert " + std::to_string(resident.expert) +
                                                 " in MoE layer " + std::to_string(resident.layer));
  }
  const LayerState& layer = state_.layers[static_cast<size_t>(resident.layer)];
  return layer.pool->map.view().flat(layer.local, resident.expert);
}

FillCount WarmCache::fill(size_t p, const std::vector<int32_t>& wanted, size_t most) {
  const SlotMapView map = snapshot(p);
  most = std::min(most, static_cast<size_t>(empty_slots(map)));
  std::vector<bool> listed(static_cast<size_t>(map.shape.layers) * static_cast<size_t>(map.shape.experts));
  std::vector<int32_t> chosen;  // the most valuable first
  for (auto id = wanted.rbegin(); id != wanted.rend() && chosen.size() < most; ++id) {
    const int32_t layer = state_.pools[p]->layers[static_cast<size_t>(*id / map.shape.experts)];
    if (state_.layers[static_cast<size_t>(layer)].rows->staged) continue;
    if (map.slot_of[*id] >= 0 || listed[static_cast<size_t>(*id)]) continue;
    listed[static_cast<size_t>(*id)] = true;
    chosen.push_back(*id);
  }
  if (chosen.empty()) return {};
  count_residents(state_, p, map, chosen.size());
  PoolMemory& memory = memory_[p];
  const ExpertPool& pool = *state_.pools[p];
  const auto n = static_cast<int64_t>(chosen.size());
  const size_t bytes = chosen.size() * sizeof(int32_t);
  state_.device.host_writes({memory.host_ids.data(), bytes}, "experts to fill");
  std::copy(chosen.rbegin(), chosen.rend(), memory.host_ids.as<int32_t>());
  state_.compute.copy("experts to fill", memory.ids.data(), memory.host_ids.data(), bytes);
  slot_ops::fill(state_.compute, pool.map.view(), memory.ids.as<int32_t>(), n, memory.plan->plan);
  if (pool.log) pool.log->note(state_.compute, SlotWrite::kFill, pool.map.view(), 0, memory.plan->plan);
  gather_layer_rows(state_.compute, "fill", memory.plan->plan, pool.bases.as<const std::byte*>(),
                    map.shape.layers, map.shape.experts, pool.slot(0), pool.layout.row_bytes);
  return {chosen.size(), chosen.size() * pool.layout.row_bytes};
}

FillCount WarmCache::fill_from(std::span<const Resident> residents) {
  std::vector<std::vector<int32_t>> wanted(memory_.size());
  for (const Resident& resident : residents) {
    const int32_t id = id_in_pool(resident);
    wanted[pool_of(state_, static_cast<size_t>(resident.layer))].push_back(id);
  }
  warm_ = std::move(wanted);
  read_maps("warm fill");
  FillCount sum;
  for (size_t p = 0; p < memory_.size(); ++p) {
    const FillCount more = fill(p, warm_[p], warm_[p].size());
    sum.rows += more.rows;
    sum.bytes += more.bytes;
  }
  return sum;
}

FillCount WarmCache::fill_idle(size_t budget_bytes) {
  read_maps("idle fill");
  FillCount sum;
  for (size_t p = 0; p < memory_.size(); ++p) {
    const SlotMapView map = snapshot(p);
    std::vector<int32_t> used;
    for (int32_t id = 0; id < map.shape.layers * map.shape.experts; ++id) {
      if (map.recency[id] >= 0) used.push_back(id);
    }
    std::stable_sort(used.begin(), used.end(),
                     [&](int32_t a, int32_t b) { return map.recency[a] < map.recency[b]; });
    std::vector<int32_t> wanted = warm_[p];
    wanted.insert(wanted.end(), used.begin(), used.end());
    const FillCount more = fill(p, wanted, (budget_bytes - sum.bytes) / state_.pools[p]->layout.row_bytes);
    sum.rows += more.rows;
    sum.bytes += more.bytes;
  }
  return sum;
}

std::vector<Resident> WarmCache::residency() {
  read_maps("residency");
  std::vector<Resident> all;
  for (size_t p = 0; p < memory_.size(); ++p) {
    for (Resident resident : slot_map::save_residency(snapshot(p))) {
      resident.layer = state_.pools[p]->layers[static_cast<size_t>(resident.layer)];
      all.push_back(resident);
    }
  }
  return all;
}

}  // namespace sluice
