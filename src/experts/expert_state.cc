// Construction of pools, plans, streams and events.
#include "experts/expert_state.h"

#include <algorithm>

#include "base/error.h"
#include "experts/slot_ops.h"

namespace sluice {
namespace {

SlotMapShape map_shape(size_t layers, int64_t experts, int64_t slots, SlotPolicy policy) {
  SlotMapShape shape;
  shape.layers = static_cast<int32_t>(layers);
  shape.experts = static_cast<int32_t>(experts);
  shape.max_slots = static_cast<int32_t>(slots);
  shape.policy = policy;
  return shape;
}

/// Layers of one row layout share a pool; the slots are divided by the pools' bytes, each pool getting at
/// least `floor`.
struct Division {
  std::vector<RowLayout> layouts;
  std::vector<std::vector<int32_t>> layers;
  std::vector<int64_t> slots;
};

Division divide(std::span<const LayerRows> rows, int64_t slots, int64_t floor) {
  Division d;
  for (size_t l = 0; l < rows.size(); ++l) {
    const auto found = std::find(d.layouts.begin(), d.layouts.end(), rows[l].layout);
    const auto at = static_cast<size_t>(found - d.layouts.begin());
    if (found == d.layouts.end()) {
      d.layouts.push_back(rows[l].layout);
      d.layers.emplace_back();
    }
    d.layers[at].push_back(static_cast<int32_t>(l));
  }
  // S counts slots of any size: a pool's share follows its number of layers.
  for (const auto& layers : d.layers) {
    const int64_t all = static_cast<int64_t>(layers.size()) * rows[static_cast<size_t>(layers[0])].experts;
    const int64_t share = slots * static_cast<int64_t>(layers.size()) / static_cast<int64_t>(rows.size());
    d.slots.push_back(std::clamp(share, std::min(floor, all), all));
  }
  return d;
}

}  // namespace

OwnedPlan::OwnedPlan(Device& device, int32_t capacity)
    : memory(device.allocate_array<int32_t>(2 * int64_t{capacity} + 1, "copy plan")) {
  auto* words = memory.as<int32_t>();
  plan = {words + 1, words + 1 + capacity, words, capacity};
}

ExpertPool::ExpertPool(Device& device, Stream& compute, const RowLayout& row_layout,
                       std::vector<int32_t> pool_layers, int64_t experts, int64_t slot_count,
                       SlotPolicy policy)
    : layout(row_layout),
      layers(std::move(pool_layers)),
      slots(slot_count),
      map(device, compute, map_shape(layers.size(), experts, slot_count, policy),
          static_cast<int32_t>(slot_count)),
      bytes(device.allocate(static_cast<size_t>(slot_count) * layout.row_bytes, "expert slots")) {}

ExpertState::ExpertState(Device& device_in, Stream& compute_in, std::span<const LayerRows> rows,
                         const ExpertShape& shape_in, const ExpertSettings& settings_in, int64_t max_rows_in)
    : device(device_in),
      compute(compute_in),
      shape(shape_in),
      settings(settings_in),
      max_rows(max_rows_in),
      demand(device.make_stream("demand", Priority::kHigh)),
      predict(device.make_stream("predict", Priority::kNormal)),
      copy(device.make_stream("copy",
                              settings.compare.high_copy_priority ? Priority::kHighest : Priority::kNormal)),
      layers(rows.size()),
      slot_ids(device.allocate_array<int32_t>(max_rows * shape.top_k, "slot ids")) {
  const Division division = divide(rows, settings.slots, min_slots(shape));
  for (size_t p = 0; p < division.layouts.size(); ++p) {
    pools.push_back(std::make_unique<ExpertPool>(device, compute, division.layouts[p], division.layers[p],
                                                 shape.experts, division.slots[p], settings.policy));
    ExpertPool& pool = *pools.back();
    if (settings.audit_every > 0) pool.log = std::make_unique<SlotLog>(device, compute, pool.slots);
    pool.ring = ring_slots(shape, pool.slots, settings.ring_slots);
    for (size_t i = 0; i < pool.layers.size(); ++i) {
      LayerState& layer = layers[static_cast<size_t>(pool.layers[i])];
      layer.pool = &pool;
      layer.local = static_cast<int32_t>(i);
    }
  }
  for (size_t l = 0; l < rows.size(); ++l) {
    LayerState& layer = layers[l];
    const auto experts = static_cast<int32_t>(rows[l].experts);
    const std::string suffix = " " + std::to_string(l);
    layer.rows = &rows[l];
    layer.demand = std::make_unique<OwnedPlan>(device, experts);
    layer.predicted = std::make_unique<OwnedPlan>(device, experts);
    layer.adopted = std::make_unique<OwnedPlan>(device, experts);
    layer.planned = device.make_event("planned" + suffix);
    layer.fetched = device.make_event("fetched" + suffix);
    layer.forecast = device.make_event("forecast" + suffix);
  }
  statuses_.resize(pools.size());
  host_counts_.resize(2 * pools.size());
  counts_ = device.allocate_array<int64_t>(static_cast<int64_t>(host_counts_.size()), "resident counts");
  if (settings.cpu.mode == CpuMode::kOff) return;
  cpu_ids = device.allocate_array<int32_t>(max_rows * shape.top_k, "CPU expert ids");
  cpu = std::make_unique<CpuExperts>(device, rows, shape, settings.cpu, max_rows);
  if (settings.cpu.mode == CpuMode::kAuto) link_meter = std::make_unique<LinkMeter>(device);
}

void ExpertState::note(SlotWrite cause, const LayerState& layer, const CopyPlan& plan) {
  if (!layer.pool->log) return;
  const SlotMapView& map = layer.pool->map.view();
  // The source of an adopted expert is a slot.
  const int32_t first_id = cause == SlotWrite::kAdoption ? -1 : map.flat(layer.local, 0);
  layer.pool->log->note(compute, cause, map, first_id, plan);
}

void ExpertState::queue_status() {
  auto* counts = counts_.as<int64_t>();
  for (size_t p = 0; p < pools.size(); ++p) {
    slot_ops::read_status(compute, pools[p]->map.view(), &statuses_[p]);
    slot_ops::count_residents(compute, pools[p]->map.view(), static_cast<int32_t>(pools[p]->ring),
                              counts + 2 * p);
  }
  compute.copy("resident counts", host_counts_.data(), counts, counts_.bytes());
}

ExpertState::Residents ExpertState::residents() const {
  Residents sum;
  for (size_t p = 0; p < pools.size(); ++p) {
    const int64_t outside = host_counts_[2 * p + 1];
    sum.all += host_counts_[2 * p];
    sum.outside_region += outside;
    // A pass leaves a decode step its victims.
    const int64_t most =
        settings.compare.epoch_invalidation ? pools[p]->slots - pools[p]->ring - min_slots(shape) : outside;
    sum.listed += std::clamp<int64_t>(most, 0, outside);
  }
  if (settings.compare.hits == HitMode::kOff) sum.listed = 0;
  return sum;
}

void ExpertState::throw_if_failed() {
  if (cpu != nullptr) cpu->throw_if_failed();
  SlotStatus first;
  for (size_t p = 0; p < pools.size(); ++p) {
    if (statuses_[p].ok()) continue;
    if (first.ok()) first = statuses_[p];
    statuses_[p] = {};
    slot_ops::clear_status(compute, pools[p]->map.view());
  }
  sluice::throw_if_failed(first);
}

}  // namespace sluice
