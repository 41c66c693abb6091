// The host version of the gather kernel.
#include "experts/gather.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "device/link_pace.h"
#include "experts/cuda/expert_ops.h"

namespace sluice {

void gather_rows(Stream& stream, const char* name, const CopyPlan& plan, const std::byte* source,
                 std::byte* target, size_t row_bytes) {
  const auto ranges = [=](RangeSink& sink) {
    const int32_t count = *plan.count;
    sink.reads(range_of(plan.dst_slot, count));
    sink.reads(range_of(plan.src_row, count));
    for (int32_t i = 0; i < count; ++i) {
      sink.reads({source + static_cast<size_t>(plan.src_row[i]) * row_bytes, row_bytes});
      sink.writes({target + static_cast<size_t>(plan.dst_slot[i]) * row_bytes, row_bytes});
    }
  };
  stream.launch_both(
      {.name = name, .reads = {range_of(plan.count, 1)}}, ranges,
      [=](const HostContext& host) {
        LinkCrossing crossing(host.link);
        crossing.add(source, static_cast<size_t>(*plan.count) * row_bytes);
        host.pool.parallel_for(*plan.count, 1, [=](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            std::memcpy(target + static_cast<size_t>(plan.dst_slot[i]) * row_bytes,
                        source + static_cast<size_t>(plan.src_row[i]) * row_bytes, row_bytes);
          }
        });
      },
      SLUICE_CUDA_OP(cuda::gather_rows, plan, source, target, row_bytes));
}

void gather_layer_rows(Stream& stream, const char* name, const CopyPlan& plan, const std::byte* const* bases,
                       int32_t layers, int32_t experts, std::byte* target, size_t row_bytes) {
  const auto source = [=](int64_t i) {
    const int32_t id = plan.src_row[i];
    return bases[id / experts] + static_cast<size_t>(id % experts) * row_bytes;
  };
  const auto ranges = [=](RangeSink& sink) {
    const int32_t count = *plan.count;
    sink.reads(range_of(plan.dst_slot, count));
    sink.reads(range_of(plan.src_row, count));
    for (int32_t i = 0; i < count; ++i) {
      sink.reads({source(i), row_bytes});
      sink.writes({target + static_cast<size_t>(plan.dst_slot[i]) * row_bytes, row_bytes});
    }
  };
  stream.launch_both(
      {.name = name, .reads = {range_of(plan.count, 1), range_of(bases, layers)}}, ranges,
      [=](const HostContext& host) {
        LinkCrossing crossing(host.link);
        crossing.add(bases[0], static_cast<size_t>(*plan.count) * row_bytes);
        host.pool.parallel_for(*plan.count, 1, [=](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            std::memcpy(target + static_cast<size_t>(plan.dst_slot[i]) * row_bytes, source(i), row_bytes);
          }
        });
      },
      SLUICE_CUDA_OP(cuda::gather_layer_rows, plan, bases, experts, target, row_bytes));
}

}  // namespace sluice
