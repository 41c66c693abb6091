// Runs a scenario under many schedules.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "device/explored/explored_device.h"

namespace sluice {

/// Builds its objects on the device, uses them, and calls device.fail() (or throws) where a result is wrong.
/// What it leaves queued is run after it returns, so whatever queued operations need lives in the device or
/// outside. The same schedule must give the same calls.
using Scenario = std::function<void(ExploredDevice&)>;

struct Exploration {
  int64_t schedules = 0;
  int64_t pieces = 0;                  // in all of them
  bool complete = false;               // explore_all: no schedule is left
  std::optional<Violation> violation;  // the first; exploration ends there
};

/// Runs one schedule; an exception other than ExplorationStopped becomes a kWrongResult.
Exploration explore_once(const Scenario& scenario, const ExploreOptions& options);
/// Every schedule, depth first, at most `limit`.
Exploration explore_all(const Scenario& scenario, int64_t limit, ExploreOptions options = {});
/// Seeds `first_seed` and up; even ones by random picks, odd ones by priorities.
Exploration explore_random(const Scenario& scenario, int64_t schedules, uint64_t first_seed,
                           ExploreOptions options = {});

}  // namespace sluice
