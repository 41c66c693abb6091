// Violations in words.
#include "device/explored/violation.h"

namespace sluice {

std::string_view name_of(ViolationKind kind) {
  switch (kind) {
    case ViolationKind::kRace:
      return "race";
    case ViolationKind::kUndeclaredWrite:
      return "undeclared write";
    case ViolationKind::kUndeclaredRead:
      return "undeclared read";
    case ViolationKind::kUnwrittenRead:
      return "unwritten read";
    case ViolationKind::kOutOfBounds:
      return "out of bounds";
    case ViolationKind::kFreedInUse:
      return "freed in use";
    case ViolationKind::kDeadlock:
      return "deadlock";
    case ViolationKind::kWrongResult:
      return "wrong result";
  }
  return "unknown";
}

std::string Violation::report() const {
  std::string text = std::string(name_of(kind)) + ": " + message + "\n";
  switch (replay.strategy) {
    case Strategy::kRandom:
      text += "random schedule, seed " + std::to_string(replay.seed);
      break;
    case Strategy::kPriorities:
      text += "schedule by priorities, seed " + std::to_string(replay.seed) + ", changes " +
              std::to_string(replay.priority_changes) + " in " + std::to_string(replay.expected_picks);
      break;
    case Strategy::kScript:
      text += "script";
      for (const uint32_t choice : replay.script) text += " " + std::to_string(choice);
      break;
  }
  text += ", after " + std::to_string(piece) + " pieces; the last ones:\n";
  for (const std::string& line : trace) text += "  " + line + "\n";
  return text;
}

}  // namespace sluice
