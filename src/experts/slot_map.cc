// Where the parts of a slot map lie, and what its statuses say.
#include "experts/slot_map.h"

#include <utility>

#include "base/error.h"
#include "experts/slot_ops.h"

namespace sluice {
namespace {

// Hands out 64-byte aligned pieces; with no base it only measures.
class Arena {
 public:
  explicit Arena(void* base) : base_(static_cast<std::byte*>(base)) {}

  template <class T>
  T* take(int64_t count) {
    const size_t begin = used_;
    used_ += (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + begin);
  }
  size_t used() const { return used_; }

 private:
  std::byte* base_;
  size_t used_ = 0;
};

void require(bool holds, const std::string& message) {
  if (!holds) throw Error(ErrorCode::kInvalidArgument, "slot map: " + message);
}

void check_shape(const SlotMapShape& shape) {
  require(shape.layers >= 1 && shape.layers <= kMaxMoeLayers,
          std::to_string(shape.layers) + " layers, expected 1 to " + std::to_string(kMaxMoeLayers));
  require(shape.experts >= 1 && shape.experts <= kMaxExperts,
          std::to_string(shape.experts) + " experts a layer, expected 1 to " + std::to_string(kMaxExperts));
  const int32_t all = shape.layers * shape.experts;
  require(shape.max_slots >= 1 && shape.max_slots <= all,
          std::to_string(shape.max_slots) + " slots, expected 1 to " + std::to_string(all));
  require(shape.beta >= 0, "beta " + std::to_string(shape.beta) + " is negative");
}

SlotMapView lay_out(void* data, const SlotMapShape& shape) {
  const int64_t ids = int64_t{shape.layers} * shape.experts;
  Arena arena(data);
  SlotMapView view;
  view.shape = shape;
  view.header = arena.take<SlotMapHeader>(1);
  view.counters = arena.take<LayerCounters>(shape.layers);
  view.last_use = arena.take<int64_t>(shape.max_slots);
  view.used_step = arena.take<int64_t>(shape.max_slots);
  view.recency = arena.take<int64_t>(ids);
  view.slot_of = arena.take<int32_t>(ids);
  view.owner_of = arena.take<int32_t>(shape.max_slots);
  view.listed = arena.take<uint8_t>(shape.max_slots);
  view.core_bytes = arena.used();
  view.index.evictable = arena.take<int64_t>(1);
  view.index.order = arena.take<int32_t>(int64_t{2} * shape.max_slots);
  if (shape.policy == SlotPolicy::kScored) view.index.layer_order = arena.take<int32_t>(2 * ids);
  view.bytes = arena.used();
  return view;
}

std::string what_failed(const SlotStatus& status) {
  const std::string detail = std::to_string(status.detail);
  switch (status.code) {
    case SlotError::kNone:
      return "no failure";
    case SlotError::kBadLayer:
      return "layer " + detail + " is outside the map";
    case SlotError::kBadId:
      return "expert " + detail + " is outside the layer";
    case SlotError::kBadRange:
      return "the range at slot " + detail + " is outside the pool";
    case SlotError::kBadSlotCount:
      return detail + " slots are below the minimum or above what the pool can hold";
    case SlotError::kNoEvictableSlot:
      return detail +
             " more slots are needed than can be evicted; give the pool more slots or send fewer tokens";
    case SlotError::kPlanFull:
      return "the copy plan is too short for " + detail + " entries";
    case SlotError::kListedSlot:
      return "slot " + detail + " is still needed by a running pass";
    case SlotError::kRegionRunning:
      return "a pass is still running over slots below " + detail;
  }
  return "unknown status " + std::to_string(static_cast<int32_t>(status.code));
}

}  // namespace

std::string describe(const SlotStatus& status) {
  const std::string what = what_failed(status);
  return status.layer < 0 ? what : "MoE layer " + std::to_string(status.layer) + ": " + what;
}

void throw_if_failed(const SlotStatus& status) {
  if (status.ok()) return;
  const bool full = status.code == SlotError::kNoEvictableSlot;
  throw Error(full ? ErrorCode::kOutOfMemory : ErrorCode::kInvalidArgument,
              "expert slots: " + describe(status));
}

size_t slot_map_bytes(const SlotMapShape& shape) {
  check_shape(shape);
  return lay_out(nullptr, shape).bytes;
}

SlotMapView view_of(void* data, const SlotMapShape& shape) { return lay_out(data, shape); }

SlotMap::SlotMap(Device& device, Stream& stream, const SlotMapShape& shape, int32_t slots)
    : buffer_(device.allocate(slot_map_bytes(shape), "slot map")), view_(view_of(buffer_.data(), shape)) {
  require(slots >= 1 && slots <= shape.max_slots,
          std::to_string(slots) + " slots, expected 1 to " + std::to_string(shape.max_slots));
  slot_ops::reset(stream, view_, slots);
}

}  // namespace sluice
