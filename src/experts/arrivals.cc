// Counting on the device, times on the host.
#include "experts/arrivals.h"

#include <algorithm>

#include "experts/cuda/expert_ops.h"

namespace sluice {
namespace {

bool names(const int32_t* ids, int64_t n, int32_t expert) {
  return std::find(ids, ids + n, expert) != ids + n;
}

}  // namespace

void count_arrivals(Stream& stream, const int32_t* ids, int64_t n, const CopyPlan& predicted,
                    const CopyPlan& demand, ArrivalCounters* counters) {
  const auto ranges = [=](RangeSink& sink) {
    sink.reads(range_of(predicted.src_row, *predicted.count));
    sink.reads(range_of(demand.src_row, *demand.count));
  };
  stream.launch_both(
      {.name = "count arrivals",
       .reads = {range_of(ids, n), range_of(predicted.count, 1), range_of(demand.count, 1),
                 range_of(counters, 1)},
       .writes = {range_of(counters, 1)}},
      ranges,
      [=](const HostContext&) {
        for (int32_t i = 0; i < *predicted.count; ++i) {
          const int32_t expert = predicted.src_row[i];
          if (!names(ids, n, expert)) continue;
          ++(names(demand.src_row, *demand.count, expert) ? counters->again : counters->wanted);
        }
      },
      SLUICE_CUDA_OP(cuda::count_arrivals, ids, n, predicted, demand, counters));
}

ArrivalMeter::ArrivalMeter(ExpertState& state)
    : state_(state),
      counters_(state.device.allocate_array<ArrivalCounters>(static_cast<int64_t>(state.layers.size()),
                                                             "arrivals")),
      seen_(state.layers.size()),
      now_(state.device, state.layers.size(), "arrivals"),
      late_(state.layers.size()) {
  ArrivalCounters* counters = counters_.as<ArrivalCounters>();
  const auto n = static_cast<int64_t>(state.layers.size());
  state.compute.launch_both(
      {.name = "reset arrivals", .writes = {range_of(counters, n)}},
      [=](const HostContext&) { std::fill(counters, counters + n, ArrivalCounters()); },
      SLUICE_CUDA_OP(cuda::zero, counters, static_cast<size_t>(n) * sizeof(ArrivalCounters)));
}

void ArrivalMeter::queue_sample() {
  if (steps_ == 0) return;
  state_.compute.copy("arrivals", now_.data(), counters_.data(), now_.bytes());
}

void ArrivalMeter::learn() {
  if (steps_ == 0) return;
  for (size_t l = 0; l < late_.size() && steps_ == 1; ++l) {
    const uint64_t wanted = now_[l].wanted - seen_[l].wanted;
    if (wanted > 0 && came_late(state_.layers[l])) late_[l] += wanted;
  }
  seen_.assign(now_.all().begin(), now_.all().end());
  steps_ = 0;
}

// `planned` stands behind the layer's ensure, `forecast` behind the copies that were predicted for it.
bool ArrivalMeter::came_late(const LayerState& layer) const {
  const auto us = state_.device.elapsed_us(*layer.planned, *layer.forecast);
  return us && *us > 0;
}

}  // namespace sluice
