// Construction of pools, plans, streams and events.
#include "experts/expert_state.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "base/error.h"
#include "experts/gather.h"
#include "experts/slot_ops.h"

namespace sluice {
namespace {

SlotMapShape map_shape(size_t layers, int64_t experts, SlotPolicy policy) {
  SlotMapShape shape;
  shape.layers = static_cast<int32_t>(layers);
  shape.experts = static_cast<int32_t>(experts);
  shape.max_slots = shape.layers * shape.experts;
  shape.policy = policy;
  return shape;
}

/// The MoE layers of each row layout.
struct Grouping {
  std::vector<RowLayout> layouts;
  std::vector<std::vector<int32_t>> layers;
};

Grouping group(std::span<const LayerRows> rows) {
  Grouping g;
  for (size_t l = 0; l < rows.size(); ++l) {
    const auto found = std::find(g.layouts.begin(), g.layouts.end(), rows[l].layout);
    const auto at = static_cast<size_t>(found - g.layouts.begin());
    if (found == g.layouts.end()) {
      g.layouts.push_back(rows[l].layout);
      g.layers.emplace_back();
    }
    g.layers[at].push_back(static_cast<int32_t>(l));
  }
  return g;
}

/// S counts slots of any size. Each pool has its layers' share of them, so that experts of all layers are
/// resident equally often: what a slot costs and what a miss costs grow alike with the row. A pool has at
/// least the slots of one decode step, and all of them together have `slots`. Throws Error kInvalidArgument.
std::vector<int64_t> divide_slots(const ExpertShape& shape, int64_t slots,
                                  const std::vector<int64_t>& pool_layers) {
  check_slots(shape, slots);
  std::vector<int64_t> least, most, sizes;
  int64_t left = slots;
  for (const int64_t count : pool_layers) {
    most.push_back(count * shape.experts);
    least.push_back(std::min(min_slots(shape), most.back()));
    sizes.push_back(std::clamp(slots * count / shape.layers, least.back(), most.back()));
    left -= sizes.back();
  }
  const int64_t needed = std::accumulate(least.begin(), least.end(), int64_t{0});
  if (slots < needed) {
    throw Error(ErrorCode::kInvalidArgument,
                std::to_string(slots) + " expert slots: at least " + std::to_string(needed) +
                    " are needed, since the experts have rows of " + std::to_string(pool_layers.size()) +
                    " layouts, and each has slots of its own");
  }
  // What rounding and the least sizes left over, one by one to the pool that is furthest from its share.
  for (; left != 0; left += left > 0 ? -1 : 1) {
    size_t best = sizes.size();
    int64_t furthest = 0;
    for (size_t p = 0; p < sizes.size(); ++p) {
      if (left > 0 ? sizes[p] == most[p] : sizes[p] == least[p]) continue;
      const int64_t below = slots * pool_layers[p] - sizes[p] * shape.layers;
      const int64_t distance = left > 0 ? below : -below;
      if (best < sizes.size() && distance <= furthest) continue;
      best = p;
      furthest = distance;
    }
    SLUICE_CHECK(best < sizes.size());
    sizes[best] += left > 0 ? 1 : -1;
  }
  return sizes;
}

/// As divide_slots; a ring of a given size is divided as the slots are.
std::vector<PoolSize> divide_pools(const ExpertShape& shape, const ExpertSettings& settings, int64_t slots,
                                   const std::vector<int64_t>& pool_layers) {
  std::vector<PoolSize> sizes;
  for (const int64_t part : divide_slots(shape, slots, pool_layers)) {
    int64_t wish = settings.ring_slots;
    if (wish != 0 && pool_layers.size() > 1) {
      wish = std::clamp<int64_t>(wish * part / slots, 2, std::min(part, 2 * shape.experts)) / 2 * 2;
    }
    sizes.push_back({part, ring_slots(shape, part, wish)});
  }
  return sizes;
}

}  // namespace

OwnedPlan::OwnedPlan(Device& device, int32_t capacity)
    : memory(device.allocate_array<int32_t>(2 * int64_t{capacity} + 1, "copy plan")) {
  auto* words = memory.as<int32_t>();
  plan = {words + 1, words + 1 + capacity, words, capacity};
}

ExpertPool::ExpertPool(Device& device, Stream& compute, const RowLayout& row_layout,
                       std::vector<int32_t> pool_layers, int64_t experts, PoolSize size, SlotPolicy policy)
    : layout(row_layout),
      layers(std::move(pool_layers)),
      slots(size.slots),
      ring(size.ring),
      map(device, compute, map_shape(layers.size(), experts, policy), static_cast<int32_t>(size.slots)),
      bytes(device.reserve(bytes_of(most_slots()), "expert slots")) {
  device.resize(*bytes, bytes_of(slots));
}

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
  const Grouping grouping = group(rows);
  std::vector<int64_t> counts;
  for (const auto& list : grouping.layers) counts.push_back(static_cast<int64_t>(list.size()));
  const std::vector<PoolSize> sizes = divide_pools(shape, settings, settings.slots, counts);
  for (size_t p = 0; p < grouping.layouts.size(); ++p) {
    pools.push_back(std::make_unique<ExpertPool>(device, compute, grouping.layouts[p], grouping.layers[p],
                                                 shape.experts, sizes[p], settings.policy));
    ExpertPool& pool = *pools.back();
    if (settings.audit_every > 0) pool.log = std::make_unique<SlotLog>(device, compute, pool.most_slots());
    for (size_t i = 0; i < pool.layers.size(); ++i) {
      LayerState& layer = layers[static_cast<size_t>(pool.layers[i])];
      layer.pool = &pool;
      layer.local = static_cast<int32_t>(i);
    }
  }
  for (const auto& pool : pools) {
    for (const int32_t l : pool->layers) {
      pool->host_bases.push_back(rows[static_cast<size_t>(l)].rows.as<std::byte>());
    }
    pool->bases =
        device.allocate_array<const std::byte*>(static_cast<int64_t>(pool->layers.size()), "row table");
    compute.copy("row table", pool->bases.data(), pool->host_bases.data(), pool->bases.bytes());
  }
  scalars = device.allocate_array<float>(
      static_cast<int64_t>(rows.size()) * shape.experts * kScalarsPerExpert, "expert scalars");
  for (size_t l = 0; l < rows.size(); ++l) {
    LayerState& layer = layers[l];
    const auto experts = static_cast<int32_t>(rows[l].experts);
    const std::string suffix = " " + std::to_string(l);
    layer.rows = &rows[l];
    layer.scalars = scalars.as<float>() + host_scalars_.size();
    host_scalars_.insert(host_scalars_.end(), rows[l].scalars.begin(), rows[l].scalars.end());
    layer.demand = std::make_unique<OwnedPlan>(device, experts);
    layer.predicted = std::make_unique<OwnedPlan>(device, experts);
    layer.adopted = std::make_unique<OwnedPlan>(device, experts);
    layer.planned = device.make_event("planned" + suffix);
    layer.fetched = device.make_event("fetched" + suffix);
    layer.forecast = device.make_event("forecast" + suffix);
  }
  SLUICE_CHECK(host_scalars_.size() * sizeof(float) == scalars.bytes());
  compute.copy("expert scalars", scalars.data(), host_scalars_.data(), scalars.bytes());
  statuses_ = HostArray<SlotStatus>(device, pools.size(), "slot status");
  host_counts_ = HostArray<int64_t>(device, 2 * pools.size(), "resident counts");
  counts_ = device.allocate_array<int64_t>(static_cast<int64_t>(host_counts_.size()), "resident counts");
  size_t largest_row = 0;
  for (const LayerRows& layer : rows) {
    if (layer.staged) largest_row = std::max(largest_row, layer.layout.row_bytes);
  }
  if (largest_row > 0 && device.needs_locked_pages() && settings.audit_every > 0) {
    throw Error(ErrorCode::kUnsupported,
                "--audit: this device can't read expert rows that are not page-locked; raise the limit of "
                "locked memory "
                "(ulimit -l unlimited) or leave the audit out");
  }
  if (largest_row > 0) {
    staged = std::make_unique<StagedRows>(device, largest_row, static_cast<int32_t>(shape.experts));
  }
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

void ExpertState::gather(Stream& stream, const char* name, const LayerState& layer, const OwnedPlan& plan,
                         const Event& planned, int64_t most) const {
  const auto* rows = layer.rows->rows.as<std::byte>();
  const size_t row_bytes = layer.pool->layout.row_bytes;
  if (layer.rows->staged) {
    staged->gather(stream, name, planned, plan, most, rows, layer.pool->slot(0), row_bytes);
  } else {
    gather_rows(stream, name, plan.plan, rows, layer.pool->slot(0), row_bytes);
  }
}

void ExpertState::copy_rows(Stream& stream, const char* name, const LayerState& layer,
                            std::span<const CopyEntry> entries) const {
  layer.rows->staged ? staged->copy(stream, name, entries) : stream.copy_batch(name, entries);
}

int64_t ExpertState::slots() const {
  int64_t sum = 0;
  for (const auto& pool : pools) sum += pool->slots;
  return sum;
}

std::vector<PoolSize> ExpertState::divide(int64_t slots) const {
  std::vector<int64_t> counts;
  for (const auto& pool : pools) counts.push_back(static_cast<int64_t>(pool->layers.size()));
  return divide_pools(shape, settings, slots, counts);
}

void ExpertState::resize(int64_t slots) {
  const std::vector<PoolSize> sizes = divide(slots);
  try {
    for (size_t p = 0; p < pools.size(); ++p) {
      if (sizes[p].slots > pools[p]->slots)
        device.resize(*pools[p]->bytes, pools[p]->bytes_of(sizes[p].slots));
    }
  } catch (const Error&) {
    // Nobody has been told of the slots that some pools have got.
    for (const auto& pool : pools) device.resize(*pool->bytes, pool->bytes_of(pool->slots));
    throw;
  }
  for (size_t p = 0; p < pools.size(); ++p) {
    slot_ops::resize(compute, pools[p]->map.view(), static_cast<int32_t>(sizes[p].slots), 1);
    pools[p]->slots = sizes[p].slots;
    pools[p]->ring = sizes[p].ring;
  }
  queue_status();  // counts residents anew
  // Slots that go may still be read, and the tables of a pass that is sized by the ring may be on their way.
  device.wait(compute, "resize");
  for (const auto& pool : pools) device.resize(*pool->bytes, pool->bytes_of(pool->slots));
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
