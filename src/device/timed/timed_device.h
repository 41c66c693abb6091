// The host backend on a simulated clock: how long a machine that is not there would take.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/timed/card.h"
#include "device/timed/machine_model.h"
#include "device/timed/timeline.h"

namespace sluice {

class TimedQueues;

struct TimedOptions {
  MachineModel machine;
  /// Which operations compute and copy for real, when they start; empty means all. What is left out costs its
  /// time alone, so that a model without weights can be forecast; what decides about ranges has to run.
  std::function<bool(const QueuedOp&)> runs = {};
  bool keep_timeline = true;
};

/// Totals since the start, in microseconds.
struct TimedReport {
  double now_us = 0;  // the host's clock
  double link_to_device_busy_us = 0, link_to_host_busy_us = 0, compute_busy_us = 0;
  std::map<std::string, double> stream_busy_us;  // by name; operations running
};

/// Everything that an operation declares has a price: bytes of device memory, bytes of pinned memory (and of
/// host memory that the device does not know) over the link, flops, launches. To be used by one host thread.
class TimedDevice final : public Device {
 public:
  explicit TimedDevice(TimedOptions options);
  ~TimedDevice() override;

  Backend backend() const override { return Backend::kHost; }
  std::unique_ptr<Event> make_event(std::string name) override;
  void wait(const Event& event, std::string_view why) override;
  void wait(Stream& stream, std::string_view why) override;
  bool done(const Event& event) override;
  std::optional<double> elapsed_us(const Event& from, const Event& to) const override;

  /// The host's clock in simulated microseconds.
  double now_us() const override;
  /// The host computes for a while.
  void advance_host(double us);
  TimedReport report() const;
  /// What has run, by end.
  const std::vector<TimelineSpan>& timeline() const;

 protected:
  Buffer allocate_memory(size_t bytes, std::string_view purpose, MemoryKind kind) override;
  std::unique_ptr<ReservedMemory> reserve_memory(size_t most_bytes, std::string purpose) override;
  std::unique_ptr<Stream> new_stream(std::string name, Priority priority) override;

 private:
  std::shared_ptr<TimedQueues> queues_;
};

inline std::unique_ptr<TimedDevice> make_timed_device(TimedOptions options) {
  return std::make_unique<TimedDevice>(std::move(options));
}

}  // namespace sluice
