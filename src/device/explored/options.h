// How schedules are explored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice {

enum class Strategy {
  /// Each schedule draws how eager the streams are against the host (from "nothing runs before a host wait"
  /// to
  /// "all runs at once") and how eager they are against each other.
  kRandom,
  /// Random priorities that change at random points: finds any bug that needs d ordering constraints with
  /// probability >= 1 / (n k^(d-1)) (Burckhardt, Kothari, Musuvathi and Nagarakatti, ASPLOS 2010).
  kPriorities,
  /// Decisions are read from `script`, then the first option is taken. Streams move only in host waits and
  /// where the host declares an access or asks whether an event is done: calls that queue something commute
  /// with what the streams do, so that this loses no result.
  kScript,
};

struct ExploreOptions {
  uint64_t seed = 1;
  Strategy strategy = Strategy::kRandom;
  std::vector<uint32_t> script = {};
  int priority_changes = 3;       // kPriorities: d
  int64_t expected_picks = 1000;  // kPriorities: the changes fall into the first this many decisions (k)

  bool check_races = true;
  /// Checks that declarations are true: three more runs of each kernel over all buffers. For small tests.
  bool shadow = false;
  /// Copies, and kernels that change more than one byte, run in two pieces.
  bool torn = true;
  /// Kernels that may write more are torn in a quarter of the cases, beyond 256 times this never.
  size_t always_torn_bytes = 64 * 1024;

  /// The host call that finds a violation throws ExplorationStopped, before the operation runs.
  bool stop_at_violation = true;
  size_t trace_pieces = 64;  // that a violation shows
};

}  // namespace sluice
