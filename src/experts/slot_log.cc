// The rings on the host backend.
#include "experts/slot_log.h"

#include <algorithm>

#include "experts/cuda/expert_ops.h"

namespace sluice {
namespace {

constexpr size_t kHeader = 64;

SlotHistory* histories_in(void* memory) {
  return reinterpret_cast<SlotHistory*>(static_cast<std::byte*>(memory) + kHeader);
}

void push(void* memory, int32_t slot, SlotWrite cause, int32_t id) {
  SlotHistory& history = histories_in(memory)[slot];
  std::copy_backward(history.begin(), history.end() - 1, history.end());
  history[0] = {++*static_cast<int64_t*>(memory), cause, id};
}

}  // namespace

std::string_view name_of(SlotWrite cause) {
  switch (cause) {
    case SlotWrite::kDemand:
      return "miss";
    case SlotWrite::kPrediction:
      return "prediction";
    case SlotWrite::kTouched:
      return "touched pass";
    case SlotWrite::kAdoption:
      return "adoption";
    case SlotWrite::kRegion:
      return "lent to a pass";
    case SlotWrite::kFill:
      return "fill";
    case SlotWrite::kNone:
      break;
  }
  return "nothing";
}

SlotLog::SlotLog(Device& device, Stream& stream, int64_t slots)
    : memory_(device.allocate(kHeader + static_cast<size_t>(slots) * sizeof(SlotHistory), "slot log")) {
  void* memory = memory_.data();
  const size_t bytes = memory_.bytes();
  stream.launch_both(
      {.name = "reset slot log", .writes = {range()}},
      [=](const HostContext&) {
        *static_cast<int64_t*>(memory) = 0;
        std::fill_n(histories_in(memory), slots, SlotHistory());
      },
      SLUICE_CUDA_OP(cuda::reset_slot_log, memory, bytes));
}

const SlotHistory* SlotLog::histories() const { return histories_in(memory_.data()); }

void SlotLog::note(Stream& stream, SlotWrite cause, const SlotMapView& map, int32_t first_id,
                   const CopyPlan& plan) {
  void* memory = memory_.data();
  stream.launch_both(
      {.name = "note writes",
       .reads = {map.range(), range_of(plan.dst_slot, plan.capacity), range_of(plan.src_row, plan.capacity),
                 range_of(plan.count, 1), range()},
       .writes = {range()}},
      [=](const HostContext&) {
        for (int32_t i = 0; i < *plan.count; ++i) {
          const int32_t slot = plan.dst_slot[i];
          push(memory, slot, cause, first_id < 0 ? map.owner_of[slot] : first_id + plan.src_row[i]);
        }
      },
      SLUICE_CUDA_OP(cuda::note_writes, memory, cause, map, first_id, plan));
}

void SlotLog::note_range(Stream& stream, SlotWrite cause, int32_t first, int32_t count) {
  void* memory = memory_.data();
  stream.launch_both(
      {.name = "note writes", .reads = {range()}, .writes = {range()}},
      [=](const HostContext&) {
        for (int32_t slot = first; slot < first + count; ++slot) push(memory, slot, cause, -1);
      },
      SLUICE_CUDA_OP(cuda::note_range, memory, cause, first, count));
}

}  // namespace sluice
