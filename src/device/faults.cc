// Counts the calls that a rule is about.
#include "device/faults.h"

namespace sluice {

bool FaultPlan::matches(Fault fault, std::string_view purpose) {
  const std::lock_guard lock(mutex_);
  bool refused = false;
  for (Rule& rule : rules_) {
    if (rule.fault != fault || purpose.find(rule.text) == std::string_view::npos) continue;
    ++rule.seen;
    refused = refused || rule.nth == kEvery || rule.seen == rule.nth;
  }
  return refused;
}

}  // namespace sluice
