// Finds pairs of accesses to the same bytes that nothing orders.
//
// For each byte it keeps the last writer and the readers since (as FastTrack: Flanagan and Freund, PLDI
// 2009). An access is compared with those: if its vector clock does not cover them, no chain of events, host
// waits and calls orders the two, whichever came first in this schedule. So one schedule shows what any
// schedule could.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "device/explored/vector_clock.h"
#include "device/stream.h"

namespace sluice {

/// Who accesses: operation `label` of `thread`, whose clock already counts it.
struct Accessor {
  size_t thread = 0;
  const VectorClock* clock = nullptr;
  std::string label;  // "copy 'experts'"
  std::string place;  // "stream 'copy'" or "the host"
};

/// Two accesses without an order.
struct Race {
  std::string message;  // without the bytes
  ByteRange range;      // first bytes that both touch
};

class RaceChecker {
 public:
  /// Each registers the access and returns the races with earlier ones, one for each other operation.
  std::vector<Race> read(ByteRange range, const Accessor& who);
  std::vector<Race> write(ByteRange range, const Accessor& who);
  /// The memory was freed or is new: what was done there is no concern of its next owner.
  void forget(ByteRange range);

 private:
  struct Access {
    uint32_t thread = 0, count = 0;  // count 0: nobody
    uint32_t who = 0;                // index into names_
  };
  struct Segment {
    uintptr_t end = 0;
    Access writer;
    std::vector<Access> readers;  // since the writer; the latest of each thread
  };
  using Segments = std::map<uintptr_t, Segment>;
  struct Names {
    std::string label, place;
  };

  void split(uintptr_t at);
  /// Cuts segments so that some begin and end with the range, and fills gaps; returns the first.
  Segments::iterator cover(uintptr_t begin, uintptr_t end);
  uint32_t name(const Accessor& who);
  /// `verbs`: what `who` does and what the earlier access did.
  void compare(const Access& earlier, const Accessor& who, const char* verb, const char* earlier_verb,
               ByteRange overlap, std::vector<Race>& races) const;

  Segments segments_;  // by first byte; disjoint
  std::vector<Names> names_;
  std::map<std::string, uint32_t, std::less<>> name_index_;
};

}  // namespace sluice
