// Host calls: what they queue, and when they let streams run.
#include "device/explored/explorer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace sluice {

Explorer::Explorer(const ExploreOptions& options) : options_(options), chooser_(make_chooser(options)) {
  lanes_.emplace_back().name = "host";
}

size_t Explorer::add_lane(std::string name) {
  lanes_.emplace_back().name = std::move(name);
  return lanes_.size() - 1;
}

bool Explorer::runnable(size_t lane) const {
  return !lanes_[lane].queue.empty() && lanes_[lane].queue.front().kind == Item::Kind::kOp;
}

void Explorer::consider_running(bool access) {
  if (stopped_ || (chooser_->at_accesses_only() && !access)) return;
  for (;;) {
    std::vector<size_t> threads{0};
    for (size_t lane = 1; lane < lanes_.size(); ++lane) {
      if (runnable(lane)) threads.push_back(lane);
    }
    const size_t picked = threads[chooser_->pick(threads)];
    if (picked == 0) return;
    run_piece(picked);
  }
}

template <class Reached>
void Explorer::run_until(const Reached& reached, const std::string& what) {
  while (!stopped_ && !reached()) {
    std::vector<size_t> threads;
    for (size_t lane = 1; lane < lanes_.size(); ++lane) {
      if (runnable(lane)) threads.push_back(lane);
    }
    if (threads.empty()) {
      violate(ViolationKind::kDeadlock, "the host waits for " + what + ", and no stream can run");
      throw ExplorationStopped(violations_.back().message);
    }
    run_piece(threads[chooser_->pick(threads)]);
  }
  if (stopped_) throw ExplorationStopped(violations_.back().message);
}

void Explorer::enqueue(size_t lane, QueuedOp op) {
  consider_running(false);
  lanes_[lane].queue.push_back({Item::Kind::kOp, std::move(op), nullptr, 0, host_});
}

std::shared_ptr<Record> Explorer::record(size_t lane, const std::string& event) {
  consider_running(false);
  bool dropped = false;
  fences_.use(FenceKind::kRecord, lanes_[lane].name, event, dropped);
  if (dropped) return nullptr;
  auto record = std::make_shared<Record>();
  lanes_[lane].queue.push_back({Item::Kind::kRecord, {}, record, 0, host_});
  settle();
  return record;
}

void Explorer::stream_wait(size_t lane, const std::string& event, std::shared_ptr<Record> record) {
  consider_running(false);
  bool dropped = false;
  const size_t fence = fences_.use(FenceKind::kStreamWait, lanes_[lane].name, event, dropped);
  if (dropped || record == nullptr) return;
  ++fences_.at(fence).bound;
  lanes_[lane].queue.push_back({Item::Kind::kWait, {}, std::move(record), fence, host_});
  settle();
}

void Explorer::host_access(ByteRange range, const char* what, bool writes) {
  consider_running(true);
  if (stopped_ || !options_.check_races) return;
  host_.advance(0);
  const Accessor host{0, &host_, std::string("'") + what + "'", "the host"};
  report(writes ? races_.write(range, host) : races_.read(range, host));
  if (writes || !is_fresh(range)) return;
  // What was to write it has not even run; the host must not follow such bytes.
  violate(ViolationKind::kUnwrittenRead, "the host ('" + std::string(what) + "') reads " +
                                             memory_.describe(range) + ", which nothing has written");
  throw ExplorationStopped(violations_.back().message);
}

bool Explorer::done(const std::string& event, const std::shared_ptr<Record>& record) {
  consider_running(true);
  bool dropped = false;
  const size_t fence = fences_.use(FenceKind::kDone, "host", event, dropped);
  if (dropped || record == nullptr || stopped_) return true;
  ++fences_.at(fence).bound;
  if (!record->ran) return false;
  if (!host_.covers(record->clock)) ++fences_.at(fence).needed;
  host_.join(record->clock);
  return true;
}

void Explorer::end_host_wait(const VectorClock& clock, size_t fence) {
  ++fences_.at(fence).bound;
  if (!host_.covers(clock)) ++fences_.at(fence).needed;
  host_.join(clock);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Explorer::host_wait(const std::string& event, const std::shared_ptr<Record>& record) {
  consider_running(false);
  bool dropped = false;
  const size_t fence = fences_.use(FenceKind::kHostWait, "host", event, dropped);
  if (dropped || record == nullptr) return;
  run_until([&] { return record->ran; }, "event '" + event + "'");
  end_host_wait(record->clock, fence);
}

void Explorer::host_wait(size_t lane) {
  consider_running(false);
  bool dropped = false;
  const size_t fence = fences_.use(FenceKind::kHostWait, "host", lanes_[lane].name, dropped);
  if (dropped) return;
  run_until([&] { return lanes_[lane].queue.empty(); }, "stream '" + lanes_[lane].name + "'");
  end_host_wait(lanes_[lane].clock, fence);
}

void Explorer::drain() {
  for (size_t lane = 1; lane < lanes_.size(); ++lane) {
    run_until([&] { return lanes_[lane].queue.empty(); }, "stream '" + lanes_[lane].name + "'");
  }
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Explorer::add_memory(void* data, size_t bytes, std::string_view purpose, MemoryKind kind) {
  memory_.add(data, bytes, purpose, kind);
}

void Explorer::resize_memory(ReservedMemory& memory, size_t before, size_t after) {
  auto* data = static_cast<std::byte*>(memory.data());
  if (after == 0) {
    if (!remove_memory(data, before)) keep(memory.pages());
    return;
  }
  if (before == 0) add_memory(data, after, memory.purpose(), MemoryKind::kDevice);
  const ByteRange changed{data + std::min(before, after), std::max(before, after) - std::min(before, after)};
  if (after > before) memory_.resize(data, after);
  host_access(changed, "resize", true);
  std::memset(data + std::min(before, after), std::to_integer<int>(kFreshByte), changed.bytes);
  if (after < before) memory_.resize(data, after);
}

bool Explorer::remove_memory(void* data, size_t bytes) {
  const auto overlaps = [&](const ByteRange& range) {
    const auto* begin = static_cast<const std::byte*>(range.begin);
    const auto* block = static_cast<const std::byte*>(data);
    return range.bytes > 0 && begin < block + bytes && block < begin + range.bytes;
  };
  for (const Lane& lane : lanes_) {
    for (const Item& item : lane.queue) {
      for (const auto* ranges : {&item.op.reads, &item.op.writes}) {
        for (const ByteRange& range : *ranges) {
          if (!overlaps(range)) continue;
          // An exception that unwinds the scenario leaves queues full; it is what is wrong then. No throw:
          // this runs in destructors.
          if (!stopped_ && std::uncaught_exceptions() == 0) {
            violate(ViolationKind::kFreedInUse, memory_.describe({data, bytes}) + " was freed while '" +
                                                    item.op.name + "' on stream '" + lane.name +
                                                    "' still needs it");
          }
          return false;
        }
      }
    }
  }
  memory_.remove(data);
  races_.forget({data, bytes});
  return true;
}

void Explorer::violate(ViolationKind kind, std::string message) {
  Violation violation{kind, std::move(message), pieces_, {}, options_};
  const size_t shown = std::min(options_.trace_pieces, history_.size());
  violation.trace.assign(history_.end() - static_cast<std::ptrdiff_t>(shown), history_.end());
  violation.replay.script.clear();
  for (const Choice& choice : chooser_->choices()) violation.replay.script.push_back(choice.picked);
  violations_.push_back(std::move(violation));
  stopped_ = options_.stop_at_violation || kind == ViolationKind::kDeadlock;
}

}  // namespace sluice
