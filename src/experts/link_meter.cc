// The host version reads the monotonic clock.
#include "experts/link_meter.h"

#include <chrono>

namespace sluice {
namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

LinkMeter::LinkMeter(Device& device)
    : memory_(device.allocate(sizeof(Shared), "link meter", MemoryKind::kPinned)),
      shared_(memory_.as<Shared>()) {
  device.host_writes(range_of(shared_, 1), "link meter");
  *shared_ = {};
}

void LinkMeter::start(Stream& stream) {
  Shared* shared = shared_;
  stream.launch({.name = "link starts", .writes = {range_of(&shared->start_ns, 1)}},
                [=](const HostContext&) { shared->start_ns = now_ns(); });
}

void LinkMeter::stop(Stream& stream, const CopyPlan& plan) {
  Shared* shared = shared_;
  stream.launch({.name = "link ends",
                 .reads = {range_of(shared, 1), range_of(plan.count, 1)},
                 .writes = {range_of(&shared->totals, 1)}},
                [=](const HostContext&) {
                  shared->totals.rows += static_cast<uint64_t>(*plan.count);
                  if (*plan.count > 0) shared->totals.busy_ns += now_ns() - shared->start_ns;
                });
}

}  // namespace sluice
