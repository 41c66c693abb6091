// One launch for each function on a slot map.
#include "experts/slot_ops.h"

#include <algorithm>

#include "experts/cuda/slot_ops.h"
#include "experts/slot_functions.h"

namespace sluice::slot_ops {
namespace {

void keep_first(const SlotMapView& map, const SlotStatus& status) {
  if (!status.ok() && map.header->status.ok()) map.header->status = status;
}

ByteRange slots_of(const CopyPlan& plan) { return range_of(plan.dst_slot, plan.capacity); }
ByteRange rows_of(const CopyPlan& plan) { return range_of(plan.src_row, plan.capacity); }
ByteRange count_of(const CopyPlan& plan) { return range_of(plan.count, 1); }

// An operation on the map alone.
template <class Body, class Cuda>
void launch(Stream& stream, const char* name, const SlotMapView& map, Body&& body, Cuda&& cuda) {
  stream.launch_both(
      {.name = name, .reads = {map.range()}, .writes = {map.range()}},
      [map, body](const HostContext&) { keep_first(map, body()); }, cuda);
}

// An operation that also reads `input` and `more`, and writes the plan.
template <class Body, class Cuda>
void launch_planned(Stream& stream, const char* name, const SlotMapView& map, ByteRange input, ByteRange more,
                    const CopyPlan& plan, Body&& body, Cuda&& cuda) {
  stream.launch_both(
      {.name = name,
       .reads = {map.range(), input, more},
       .writes = {map.range(), slots_of(plan), rows_of(plan), count_of(plan)}},
      [map, body](const HostContext&) { keep_first(map, body()); }, cuda);
}

}  // namespace

void reset(Stream& stream, const SlotMapView& map, int32_t slots) {
  stream.launch_both(
      {.name = "slot reset", .reads = {}, .writes = {map.range()}},
      [=](const HostContext&) { keep_first(map, slot_map::reset(map, slots)); },
      SLUICE_CUDA_OP(cuda::slot_reset, map, slots));
}

void ensure(Stream& stream, const SlotMapView& map, int32_t layer, int32_t* ids, int64_t n,
            const CopyPlan& plan) {
  stream.launch_both(
      {.name = "ensure",
       .reads = {map.range(), range_of(ids, n)},
       .writes = {map.range(), range_of(ids, n), slots_of(plan), rows_of(plan), count_of(plan)}},
      [=](const HostContext&) {
        const SlotStatus status = slot_map::ensure(map, layer, ids, n, plan);
        keep_first(map, status);
        if (!status.ok()) std::fill_n(ids, n, -1);
      },
      SLUICE_CUDA_OP(cuda::slot_ensure, map, layer, ids, n, std::nullopt, nullptr, plan));
}

void ensure_capped(Stream& stream, const SlotMapView& map, int32_t layer, int32_t* ids, int64_t n,
                   const FetchRule& rule, int32_t* cpu_ids, const CopyPlan& plan) {
  stream.launch_both(
      {.name = "ensure capped",
       .reads = {map.range(), range_of(ids, n)},
       .writes = {map.range(), range_of(ids, n), range_of(cpu_ids, n), slots_of(plan), rows_of(plan),
                  count_of(plan)}},
      [=](const HostContext&) {
        const SlotStatus status = slot_map::ensure_capped(map, layer, ids, n, rule, cpu_ids, plan);
        keep_first(map, status);
        if (status.ok()) return;
        std::fill_n(ids, n, -1);
        std::fill_n(cpu_ids, n, -1);
      },
      SLUICE_CUDA_OP(cuda::slot_ensure, map, layer, ids, n, rule, cpu_ids, plan));
}

void install_predictions(Stream& stream, const SlotMapView& map, int32_t layer, const int32_t* ids, int64_t n,
                         const int32_t* most, const CopyPlan& plan) {
  launch_planned(
      stream, "install predictions", map, range_of(ids, n), range_of(most, 1), plan,
      [=] { return slot_map::install_predictions(map, layer, ids, n, *most, plan); },
      SLUICE_CUDA_OP(cuda::slot_install_predictions, map, layer, ids, n, most, plan));
}

void invalidate(Stream& stream, const SlotMapView& map, int32_t first_slot, int32_t count) {
  launch(
      stream, "invalidate", map, [=] { return slot_map::invalidate(map, first_slot, count); },
      SLUICE_CUDA_OP(cuda::slot_invalidate, map, first_slot, count));
}

void begin_region(Stream& stream, const SlotMapView& map, int32_t region_slots, const int32_t* layers,
                  int64_t n) {
  stream.launch_both(
      {.name = "begin region",
       .reads = {map.range(), range_of(layers, layers == nullptr ? 0 : n)},
       .writes = {map.range()}},
      [=](const HostContext&) { keep_first(map, slot_map::begin_region(map, region_slots, layers, n)); },
      SLUICE_CUDA_OP(cuda::slot_begin_region, map, region_slots, layers, n));
}

void leave_evictable(Stream& stream, const SlotMapView& map, int32_t count) {
  launch(
      stream, "leave evictable", map, [=] { return slot_map::leave_evictable(map, count); },
      SLUICE_CUDA_OP(cuda::slot_leave_evictable, map, count));
}

void release_layer(Stream& stream, const SlotMapView& map, int32_t layer) {
  launch(
      stream, "release layer", map, [=] { return slot_map::release_layer(map, layer); },
      SLUICE_CUDA_OP(cuda::slot_release_layer, map, layer));
}

void end_region(Stream& stream, const SlotMapView& map) {
  launch(
      stream, "end region", map, [=] { return slot_map::end_region(map); },
      SLUICE_CUDA_OP(cuda::slot_end_region, map));
}

void adopt(Stream& stream, const SlotMapView& map, int32_t layer, const int32_t* ids, int64_t n,
           const int32_t* region_slot_of, const CopyPlan& plan) {
  const ByteRange sources = range_of(region_slot_of, region_slot_of == nullptr ? 0 : map.shape.experts);
  launch_planned(
      stream, "adopt", map, range_of(ids, n), sources, plan,
      [=] { return slot_map::adopt(map, layer, ids, n, region_slot_of, plan); },
      SLUICE_CUDA_OP(cuda::slot_adopt, map, layer, ids, n, region_slot_of, plan));
}

void materialise(Stream& stream, const SlotMapView& map, int32_t layer, int32_t first_slot,
                 const CopyPlan& plan) {
  launch_planned(
      stream, "materialise", map, {}, {}, plan,
      [=] { return slot_map::materialise(map, layer, first_slot, plan); },
      SLUICE_CUDA_OP(cuda::slot_materialise, map, layer, first_slot, plan));
}

void resize(Stream& stream, const SlotMapView& map, int32_t slots, int32_t min_slots) {
  launch(
      stream, "resize slots", map, [=] { return slot_map::resize(map, slots, min_slots); },
      SLUICE_CUDA_OP(cuda::slot_resize, map, slots, min_slots));
}

void fill(Stream& stream, const SlotMapView& map, const int32_t* ids, int64_t n, const CopyPlan& plan) {
  launch_planned(
      stream, "fill slots", map, range_of(ids, n), {}, plan,
      [=] { return slot_map::fill(map, ids, n, plan); }, SLUICE_CUDA_OP(cuda::slot_fill, map, ids, n, plan));
}

void read_status(Stream& stream, const SlotMapView& map, SlotStatus* status) {
  stream.copy("slot status", status, &map.header->status, sizeof(SlotStatus));
}

void count_residents(Stream& stream, const SlotMapView& map, int32_t first_slot, int64_t* counts) {
  stream.launch_both(
      {.name = "count residents", .reads = {map.range()}, .writes = {range_of(counts, 2)}},
      [=](const HostContext&) {
        counts[0] = counts[1] = 0;
        for (int32_t slot = 0; slot < map.header->slots; ++slot) {
          if (map.owner_of[slot] < 0) continue;
          ++counts[0];
          counts[1] += slot >= first_slot ? 1 : 0;
        }
      },
      SLUICE_CUDA_OP(cuda::slot_count_residents, map, first_slot, counts));
}

void clear_status(Stream& stream, const SlotMapView& map) {
  launch(
      stream, "clear slot status", map,
      [=] {
        map.header->status = {};
        return SlotStatus{};
      },
      SLUICE_CUDA_OP(cuda::slot_clear_status, map));
}

}  // namespace sluice::slot_ops
