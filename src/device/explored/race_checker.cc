// An interval map of last writers and readers.
#include "device/explored/race_checker.h"

#include <algorithm>

namespace sluice {
namespace {

uintptr_t address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

ByteRange bytes_between(uintptr_t begin, uintptr_t end) {
  return {reinterpret_cast<const void*>(begin), static_cast<size_t>(end - begin)};
}

}  // namespace

void RaceChecker::split(uintptr_t at) {
  auto after = segments_.upper_bound(at);
  if (after == segments_.begin()) return;
  const auto segment = std::prev(after);
  if (segment->first == at || segment->second.end <= at) return;
  Segment tail = segment->second;
  segment->second.end = at;
  segments_.emplace_hint(after, at, std::move(tail));
}

RaceChecker::Segments::iterator RaceChecker::cover(uintptr_t begin, uintptr_t end) {
  split(begin);
  split(end);
  auto at = segments_.lower_bound(begin);
  for (uintptr_t position = begin; position < end;) {
    if (at == segments_.end() || at->first > position) {
      const uintptr_t gap_end = at == segments_.end() ? end : std::min(end, at->first);
      at = segments_.emplace_hint(at, position, Segment{gap_end, {}, {}});
    }
    position = at->second.end;
    ++at;
  }
  return segments_.find(begin);
}

uint32_t RaceChecker::name(const Accessor& who) {
  const std::string key = who.label + "\n" + who.place;
  const auto [at, added] = name_index_.emplace(key, static_cast<uint32_t>(names_.size()));
  if (added) names_.push_back({who.label, who.place});
  return at->second;
}

void RaceChecker::compare(const Access& earlier, const Accessor& who, const char* verb,
                          const char* earlier_verb, ByteRange overlap, std::vector<Race>& races) const {
  if (earlier.count == 0 || who.clock->at(earlier.thread) >= earlier.count) return;
  const Names& other = names_[earlier.who];
  std::string message = std::string(verb) + " by " + who.label + " on " + who.place +
                        " is not ordered after " + earlier_verb + " by " + other.label + " on " + other.place;
  message += earlier.thread == 0 ? "; the host did it after the call that queued the other"
                                 : "; no event or host wait leads from " + other.place + " after " +
                                       other.label + " to " + who.place + " before " + who.label;
  for (const Race& race : races) {
    if (race.message == message) return;
  }
  races.push_back({std::move(message), overlap});
}

std::vector<Race> RaceChecker::read(ByteRange range, const Accessor& who) {
  std::vector<Race> races;
  if (range.bytes == 0) return races;
  const uintptr_t begin = address(range.begin), end = begin + range.bytes;
  const Access access{static_cast<uint32_t>(who.thread), who.clock->at(who.thread), name(who)};
  for (auto at = cover(begin, end); at != segments_.end() && at->first < end; ++at) {
    Segment& segment = at->second;
    compare(segment.writer, who, "read", "write", bytes_between(at->first, segment.end), races);
    const auto own = std::find_if(segment.readers.begin(), segment.readers.end(),
                                  [&](const Access& reader) { return reader.thread == access.thread; });
    if (own != segment.readers.end()) {
      *own = access;
    } else {
      segment.readers.push_back(access);
    }
  }
  return races;
}

std::vector<Race> RaceChecker::write(ByteRange range, const Accessor& who) {
  std::vector<Race> races;
  if (range.bytes == 0) return races;
  const uintptr_t begin = address(range.begin), end = begin + range.bytes;
  const Access access{static_cast<uint32_t>(who.thread), who.clock->at(who.thread), name(who)};
  const auto first = cover(begin, end);
  for (auto at = first; at != segments_.end() && at->first < end; ++at) {
    const ByteRange bytes = bytes_between(at->first, at->second.end);
    for (const Access& reader : at->second.readers) compare(reader, who, "write", "read", bytes, races);
    compare(at->second.writer, who, "write", "write", bytes, races);
  }
  first->second = Segment{end, access, {}};
  segments_.erase(std::next(first), segments_.lower_bound(end));
  return races;
}

void RaceChecker::forget(ByteRange range) {
  if (range.bytes == 0) return;
  const uintptr_t begin = address(range.begin), end = begin + range.bytes;
  split(begin);
  split(end);
  segments_.erase(segments_.lower_bound(begin), segments_.lower_bound(end));
}

}  // namespace sluice
