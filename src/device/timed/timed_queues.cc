// From event to event: pass markers, submit heads, start, advance.
#include "device/timed/timed_queues.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/error.h"
#include "device/timed/pricing.h"

namespace sluice {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

TimedQueues::TimedQueues(TimedOptions options) : options_(std::move(options)), card_(options_.machine) {}

size_t TimedQueues::add_lane(std::string name, Priority priority) {
  Lane& lane = lanes_.emplace_back();
  lane.name = std::move(name);
  lane.priority = static_cast<int>(priority);
  return lanes_.size() - 1;
}

void TimedQueues::push(size_t lane, Item item) {
  host_us_ += options_.machine.host_call_us;
  item.issued_us = host_us_;
  lanes_[lane].queue.push_back(std::move(item));
}

void TimedQueues::enqueue(size_t lane, QueuedOp op) {
  push(lane, {Item::Kind::kOp, std::move(op), nullptr, 0});
}

std::shared_ptr<TimedQueues::Record> TimedQueues::record(size_t lane) {
  auto record = std::make_shared<Record>();
  push(lane, {Item::Kind::kRecord, {}, record, 0});
  return record;
}

void TimedQueues::stream_wait(size_t lane, std::shared_ptr<Record> record) {
  if (record != nullptr) push(lane, {Item::Kind::kWait, {}, std::move(record), 0});
}

bool TimedQueues::done(const std::shared_ptr<Record>& record) {
  host_us_ += options_.machine.host_call_us;
  if (record == nullptr) return true;
  simulate(host_us_, [&] { return record->ran; });
  return record->ran;
}

void TimedQueues::host_wait(const std::shared_ptr<Record>& record) {
  if (record != nullptr) {
    simulate(kInfinity, [&] { return record->ran; });
    SLUICE_CHECK_MSG(record->ran, "nothing can end a host wait");
    host_us_ = std::max(host_us_, record->at_us);
  }
  host_us_ += options_.machine.host_wait_us;
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

template <class Reached>
void TimedQueues::simulate(double horizon_us, const Reached& reached) {
  for (;;) {
    settle();
    if (reached()) return;
    // Bodies run in the order of the simulated starts.
    for (const size_t lane : card_.admit(card_us_)) start(lane);
    const double next = std::min(card_.next_event_us(card_us_), next_issue_us());
    if (next == kInfinity && horizon_us == kInfinity) return;
    const double to = std::min(next, horizon_us);
    const std::vector<CardJob> ended = card_.advance(card_us_, to);
    card_us_ = to;
    for (const CardJob& job : ended) end(job);
    if (next > horizon_us) return settle();
  }
}

void TimedQueues::settle() {
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t lane = 0; lane < lanes_.size(); ++lane) moved = settle(lane) || moved;
  }
}

bool TimedQueues::settle(size_t lane_index) {
  Lane& lane = lanes_[lane_index];
  bool moved = false;
  while (!lane.queue.empty() && !lane.submitted && lane.queue.front().issued_us <= card_us_) {
    Item& item = lane.queue.front();
    if (item.kind == Item::Kind::kWait && !item.record->ran) break;
    moved = true;
    if (item.kind == Item::Kind::kOp) {
      CardJob job = price(item.op, memory_, options_.machine);
      job.lane = lane_index;
      job.priority = lane.priority;
      job.ready_us = card_us_;
      card_.submit(job);
      lane.submitted = true;
      break;
    }
    if (item.kind == Item::Kind::kRecord) *item.record = {.ran = true, .at_us = card_us_};
    lane.queue.pop_front();
  }
  return moved;
}

double TimedQueues::next_issue_us() const {
  double next = kInfinity;
  for (const Lane& lane : lanes_) {
    if (lane.queue.empty() || lane.submitted) continue;
    const double issued = lane.queue.front().issued_us;
    if (issued > card_us_) next = std::min(next, issued);
  }
  return next;
}

void TimedQueues::start(size_t lane_index) {
  const QueuedOp& op = lanes_[lane_index].queue.front().op;
  if (options_.runs && !options_.runs(op)) return;
  try {
    if (op.body) op.body(context_);
  } catch (...) {
    if (!failure_) failure_ = std::current_exception();
  }
  for (const CopyEntry& entry : op.entries) std::memcpy(entry.target, entry.source, entry.bytes);
}

void TimedQueues::end(const CardJob& job) {
  Lane& lane = lanes_[job.lane];
  lane.busy_us += card_us_ - job.start_us;
  if (options_.keep_timeline) {
    timeline_.push_back({lane.queue.front().op.name, lane.name, job.start_us, card_us_});
  }
  lane.queue.pop_front();
  lane.submitted = false;
}

TimedReport TimedQueues::report() const {
  TimedReport report;
  report.now_us = host_us_;
  report.link_to_device_busy_us = card_.link_busy_us(LinkDirection::kToDevice);
  report.link_to_host_busy_us = card_.link_busy_us(LinkDirection::kToHost);
  report.compute_busy_us = card_.compute_busy_us();
  for (const Lane& lane : lanes_) report.stream_busy_us[lane.name] += lane.busy_us;
  return report;
}

}  // namespace sluice
