// What tests of the slot map share: a map with its plan, and short ways to call it.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "device/device.h"
#include "experts/slot_functions.h"
#include "experts/slot_map.h"

namespace sluice {

/// Memory of a copy plan.
struct PlanBuffer {
  explicit PlanBuffer(int32_t capacity)
      : slots(static_cast<size_t>(capacity), -7), rows(static_cast<size_t>(capacity), -7) {}
  CopyPlan plan() { return {slots.data(), rows.data(), &count, static_cast<int32_t>(slots.size())}; }
  std::vector<std::pair<int32_t, int32_t>> entries() const {
    std::vector<std::pair<int32_t, int32_t>> result;
    EXPECT_GE(count, 0) << "no function has set the plan's count";
    for (int32_t i = 0; i < count; ++i) {
      result.emplace_back(slots[static_cast<size_t>(i)], rows[static_cast<size_t>(i)]);
    }
    return result;
  }

  std::vector<int32_t> slots, rows;
  int32_t count = -7;
};

using Entries = std::vector<std::pair<int32_t, int32_t>>;  // (slot, row)
using Ids = std::vector<int32_t>;

/// A map on the inline host device, with the fast functions.
class TestMap {
 public:
  TestMap(const SlotMapShape& shape, int32_t slots)
      : device_(make_host_device(1)),
        stream_(device_->make_stream()),
        map_(*device_, *stream_, shape, slots),
        buffer_(std::max(shape.experts, 16)) {}
  /// `layers` of `experts`, with `slots` slots and room for all.
  TestMap(int32_t layers, int32_t experts, int32_t slots)
      : TestMap({.layers = layers, .experts = experts, .max_slots = layers * experts}, slots) {}

  const SlotMapView& view() const { return map_.view(); }
  Stream& stream() { return *stream_; }
  PlanBuffer& buffer() { return buffer_; }
  CopyPlan plan() { return buffer_.plan(); }
  Entries planned() const { return buffer_.entries(); }

  /// The slots of `ids`; the call must succeed.
  Ids ensure(int32_t layer, Ids ids) {
    const SlotStatus status =
        slot_map::ensure(view(), layer, ids.data(), static_cast<int64_t>(ids.size()), plan());
    EXPECT_TRUE(status.ok()) << describe(status);
    return ids;
  }
  SlotStatus try_ensure(int32_t layer, Ids& ids) {
    return slot_map::ensure(view(), layer, ids.data(), static_cast<int64_t>(ids.size()), plan());
  }
  void predict(int32_t layer, const Ids& ids, int32_t most = 1000) {
    const SlotStatus status = slot_map::install_predictions(view(), layer, ids.data(),
                                                            static_cast<int64_t>(ids.size()), most, plan());
    EXPECT_TRUE(status.ok()) << describe(status);
  }
  int32_t slot_of(int32_t layer, int32_t expert) const { return view().slot_of[view().flat(layer, expert)]; }
  std::pair<int32_t, int32_t> owner(int32_t slot) const {
    const int32_t id = view().owner_of[slot];
    return id < 0 ? std::pair(-1, -1) : std::pair(id / view().shape.experts, id % view().shape.experts);
  }
  std::vector<std::byte> bytes() const {
    const auto* begin = reinterpret_cast<const std::byte*>(view().header);
    return {begin, begin + view().bytes};
  }
  std::string fault() const { return slot_map::check_integrity(view()); }

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  SlotMap map_;
  PlanBuffer buffer_;
};

}  // namespace sluice
