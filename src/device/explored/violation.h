// What an exploration found.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "device/explored/options.h"

namespace sluice {

enum class ViolationKind {
  kRace,             // two accesses without an order
  kUndeclaredWrite,  // shadow memory
  kUndeclaredRead,   // shadow memory
  kUnwrittenRead,    // the host, or ranges that depend on data, look at what nothing has written
  kOutOfBounds,      // a declared range leaves its buffer
  kFreedInUse,       // a buffer was freed while a queued operation needs it
  kDeadlock,         // a host wait that nothing can end
  kWrongResult,      // the scenario said so
};

/// "race", "undeclared write", ...
std::string_view name_of(ViolationKind kind);

struct Violation {
  ViolationKind kind = ViolationKind::kRace;
  std::string message;
  int64_t piece = 0;               // how many pieces had been started
  std::vector<std::string> trace;  // the last pieces, the newest last: "compute: 'expert_mlp' 1/2"
  ExploreOptions replay;           // an exploration with these options finds it again

  /// All of it for people, several lines.
  std::string report() const;
};

/// Unwinds a scenario whose violation is already noted.
class ExplorationStopped : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace sluice
