// The queues of a timed device and its clocks.
#pragma once

#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "device/memory_map.h"
#include "device/timed/timed_device.h"

namespace sluice {

/// The simulation follows the host: it runs on only where the host waits or asks, up to where nothing that
/// the host may still queue can matter. Lanes are streams and outlive their handles.
class TimedQueues {
 public:
  struct Record {
    bool ran = false;
    double at_us = 0;
  };

  explicit TimedQueues(TimedOptions options);

  size_t add_lane(std::string name, Priority priority);
  void enqueue(size_t lane, QueuedOp op);
  std::shared_ptr<Record> record(size_t lane);
  void stream_wait(size_t lane, std::shared_ptr<Record> record);
  bool done(const std::shared_ptr<Record>& record);
  void host_wait(const std::shared_ptr<Record>& record);

  double now_us() const { return host_us_; }
  void advance_host(double us) { host_us_ += us; }
  TimedReport report() const;
  const std::vector<TimelineSpan>& timeline() const { return timeline_; }
  MemoryMap& memory() { return memory_; }
  const MachineModel& machine() const { return options_.machine; }

 private:
  struct Item {
    enum class Kind { kOp, kRecord, kWait } kind = Kind::kOp;
    QueuedOp op;
    std::shared_ptr<Record> record;
    double issued_us = 0;
  };
  struct Lane {
    std::string name;
    int priority = 0;
    std::deque<Item> queue;
    bool submitted = false;  // the front of the queue is with the card
    double busy_us = 0;
  };

  void push(size_t lane, Item item);
  /// Runs until `reached`, or up to `horizon_us`.
  template <class Reached>
  void simulate(double horizon_us, const Reached& reached);
  void settle();
  bool settle(size_t lane);
  double next_issue_us() const;
  void start(size_t lane);
  void end(const CardJob& job);

  TimedOptions options_;
  Card card_;
  ThreadPool pool_{1};
  HostContext context_{pool_};
  MemoryMap memory_;
  std::vector<Lane> lanes_;
  double host_us_ = 0, card_us_ = 0;
  std::vector<TimelineSpan> timeline_;
  std::exception_ptr failure_;
};

}  // namespace sluice
