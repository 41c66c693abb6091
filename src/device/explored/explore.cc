// Depth-first search over scripts, and seeds in a row.
#include "device/explored/explore.h"

#include <algorithm>

#include "device/explored/explorer.h"

namespace sluice {
namespace {

// Runs the scenario on `device` to its end.
Exploration run(const Scenario& scenario, ExploredDevice& device) {
  try {
    scenario(device);
    device.drain();
  } catch (const ExplorationStopped&) {
    // The violation is noted.
  } catch (const std::exception& error) {
    if (device.violations().empty()) device.note_exception(error.what());
  }
  Exploration result;
  result.schedules = 1;
  result.pieces = device.explorer().pieces();
  if (!device.violations().empty()) result.violation = device.violations().front();
  return result;
}

void add(Exploration& total, Exploration one) {
  total.schedules += one.schedules;
  total.pieces += one.pieces;
  total.violation = std::move(one.violation);
}

// The script after `choices` in depth-first order; false at the end.
bool next_script(std::span<const Choice> choices, std::vector<uint32_t>& script) {
  while (!choices.empty() && choices.back().picked + 1 == choices.back().options) {
    choices = choices.first(choices.size() - 1);
  }
  if (choices.empty()) return false;
  script.clear();
  for (const Choice& choice : choices) script.push_back(choice.picked);
  ++script.back();
  return true;
}

}  // namespace

Exploration explore_once(const Scenario& scenario, const ExploreOptions& options) {
  ExploredDevice device(options);
  return run(scenario, device);
}

Exploration explore_all(const Scenario& scenario, int64_t limit, ExploreOptions options) {
  options.strategy = Strategy::kScript;
  options.script.clear();
  Exploration total;
  while (total.schedules < limit && !total.complete && !total.violation.has_value()) {
    ExploredDevice device(options);
    add(total, run(scenario, device));
    total.complete = !next_script(device.explorer().chooser().choices(), options.script);
  }
  return total;
}

Exploration explore_random(const Scenario& scenario, int64_t schedules, uint64_t first_seed,
                           ExploreOptions options) {
  Exploration total;
  for (int64_t i = 0; i < schedules && !total.violation.has_value(); ++i) {
    options.seed = first_seed + static_cast<uint64_t>(i);
    options.strategy = options.seed % 2 == 0 ? Strategy::kRandom : Strategy::kPriorities;
    Exploration one = explore_once(scenario, options);
    // Changes of priority are worth something only where the schedule still runs.
    options.expected_picks = std::max<int64_t>(one.pieces, 1);
    add(total, std::move(one));
  }
  return total;
}

}  // namespace sluice
