// Running the heads of queues, piece by piece.
#include <algorithm>

#include "base/error.h"
#include "device/explored/explorer.h"
#include "device/explored/shadow.h"

namespace sluice {

// What an operation touches.
struct Explorer::Ranges final : RangeSink {
  explicit Ranges(const QueuedOp& op) : read(op.reads), written(op.writes) {}
  void reads(ByteRange range) override { read.push_back(range); }
  void writes(ByteRange range) override { written.push_back(range); }

  std::vector<ByteRange> read, written;
};

void Explorer::run_piece(size_t lane_index) {
  Lane& lane = lanes_[lane_index];
  if (lane.started.has_value()) {
    note_piece(lane.name, lane.queue.front().op, " 2/2");
    run_copy(lane.started->entries);
    finish(lane.started->held);
    lane.started.reset();
  } else {
    start(lane_index);
  }
  if (!lane.started.has_value()) {
    lane.queue.pop_front();
    settle();
  }
}

void Explorer::start(size_t lane_index) {
  Lane& lane = lanes_[lane_index];
  const Item& item = lane.queue.front();
  lane.clock.join(item.host);
  lane.clock.advance(lane_index);
  Ranges ranges(item.op);
  note_piece(lane.name, item.op, "");
  check(lane, lane_index, item.op, ranges);
  if (item.op.data_ranges) {
    // Only now: what they read is declared at the call, and garbage where that races.
    check_written(lane, item.op);
    item.op.data_ranges(ranges);
    check(lane, lane_index, item.op, ranges);
  }
  try {
    lane.started = run_first_piece(item.op, ranges);
  } catch (const ExplorationStopped&) {
    throw;
  } catch (...) {
    if (!failure_) failure_ = std::current_exception();
  }
  if (lane.started.has_value()) history_.back() += " 1/2";
}

std::optional<Explorer::Started> Explorer::run_first_piece(const QueuedOp& op, const Ranges& ranges) {
  if (op.is_copy && !op.body) return run_first_part_of_copy(op);
  if (!tears(ranges)) {
    run_body(op, ranges);
    return std::nullopt;
  }
  const bool hold_first = chooser_->draw(2) == 0;
  std::vector<HeldWrite> held = run_torn(ranges.written, hold_first, [&] { run_body(op, ranges); });
  if (held.empty()) return std::nullopt;
  return Started{{}, std::move(held)};
}

std::optional<Explorer::Started> Explorer::run_first_part_of_copy(const QueuedOp& op) {
  std::vector<CopyEntry> first = op.entries;
  const size_t bytes = total_bytes(first);
  if (!options_.torn || bytes < 2) {
    run_copy(first);
    return std::nullopt;
  }
  std::vector<CopyEntry> rest = cut_copy(first, 1 + chooser_->draw(bytes - 1));
  if (chooser_->draw(2) == 0) std::swap(first, rest);  // the link promises no order inside a copy
  run_copy(first);
  return Started{std::move(rest), {}};
}

bool Explorer::tears(const Ranges& ranges) {
  if (!options_.torn) return false;
  size_t bytes = 0;
  for (const ByteRange& range : ranges.written) bytes += range.bytes;
  if (bytes <= options_.always_torn_bytes) return bytes >= 2;
  return bytes <= 256 * options_.always_torn_bytes && chooser_->draw(4) == 0;
}

void Explorer::run_body(const QueuedOp& op, const Ranges& ranges) {
  const auto body = [&] { op.body(context_); };
  if (!options_.shadow || op.is_copy) return body();
  for (const std::string& finding : run_shadowed(ranges.read, ranges.written, memory_, body)) {
    const auto kind =
        finding.starts_with("writes") ? ViolationKind::kUndeclaredWrite : ViolationKind::kUndeclaredRead;
    violate(kind, std::string("kernel '") + op.name + "' " + finding);
  }
  if (stopped_) throw ExplorationStopped(violations_.back().message);
}

bool Explorer::is_fresh(ByteRange range) const {
  const auto* bytes = static_cast<const std::byte*>(range.begin);
  return range.bytes > 0 && memory_.find(bytes) != nullptr &&
         std::all_of(bytes, bytes + range.bytes, [](std::byte b) { return b == kFreshByte; });
}

// An operation that runs before the one that writes its plan races only once the other comes; the plan must
// not be followed until then.
void Explorer::check_written(const Lane& lane, const QueuedOp& op) {
  for (const ByteRange& range : op.reads) {
    if (!is_fresh(range)) continue;
    violate(ViolationKind::kUnwrittenRead, std::string("kernel '") + op.name + "' on stream '" + lane.name +
                                               "' reads " + memory_.describe(range) +
                                               ", which nothing has written");
    throw ExplorationStopped(violations_.back().message);
  }
}

void Explorer::check(const Lane& lane, size_t thread, const QueuedOp& op, const Ranges& ranges) {
  for (const auto* list : {&ranges.read, &ranges.written}) {
    for (const ByteRange& range : *list) {
      if (range.bytes == 0 || memory_.inside(range)) continue;
      violate(ViolationKind::kOutOfBounds, std::string("'") + op.name + "' on stream '" + lane.name +
                                               "' declares " + memory_.describe(range) +
                                               ", which is not inside one buffer");
      if (stopped_) throw ExplorationStopped(violations_.back().message);
    }
  }
  if (!options_.check_races) return;
  const Accessor who{thread, &lane.clock, std::string(op.is_copy ? "copy '" : "kernel '") + op.name + "'",
                     "stream '" + lane.name + "'"};
  for (const ByteRange& range : ranges.read) report(races_.read(range, who));
  for (const ByteRange& range : ranges.written) report(races_.write(range, who));
}

void Explorer::report(const std::vector<Race>& races) {
  for (const Race& race : races) {
    std::string message = memory_.describe(race.range) + ": " + race.message;
    bool known = false;
    for (const Violation& violation : violations_) known = known || violation.message == message;
    if (!known) violate(ViolationKind::kRace, std::move(message));
    if (stopped_) throw ExplorationStopped(violations_.back().message);
  }
}

void Explorer::settle() {
  for (bool moved = true; moved;) {
    moved = false;
    for (Lane& lane : lanes_) {
      while (!lane.queue.empty()) {
        const Item& item = lane.queue.front();
        if (item.kind == Item::Kind::kOp || (item.kind == Item::Kind::kWait && !item.record->ran)) break;
        pass(lane, item);
        lane.queue.pop_front();
        moved = true;
      }
    }
  }
}

void Explorer::pass(Lane& lane, const Item& item) {
  lane.clock.join(item.host);
  if (item.kind == Item::Kind::kRecord) {
    item.record->clock = lane.clock;
    item.record->ran = true;
    return;
  }
  if (!lane.clock.covers(item.record->clock)) ++fences_.at(item.fence).needed;
  lane.clock.join(item.record->clock);
}

void Explorer::note_piece(const std::string& lane, const QueuedOp& op, const char* piece) {
  ++pieces_;
  history_.push_back(lane + ": '" + op.name + "'" + piece);
}

}  // namespace sluice
