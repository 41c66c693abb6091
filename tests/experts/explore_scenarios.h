// Small uses of the executor that serves, for exploration: each compares its outputs bit for bit.
#pragma once

#include <ostream>
#include <span>
#include <string>

#include "device/explored/explore.h"
#include "experts/settings.h"

namespace sluice {

/// 3 MoE layers of 6 experts, top-2. Its outputs must equal those of experts read straight from host memory.
struct ProtocolScenario {
  std::string name;  // as in a test's name
  std::string what;  // one line for people
  ExpertSettings settings;
  /// Everything up to the comparison, with these settings.
  std::function<void(ExploredDevice&, const ExpertSettings&)> run;

  friend void PrintTo(const ProtocolScenario& scenario, std::ostream* out) { *out << scenario.name; }

  Scenario scenario() const { return scenario_with(settings.mutations); }
  Scenario scenario_with(const ProtocolMutations& mutations) const;
};

/// Name of the event that a scenario waits for at its end; no fence of a protocol.
inline constexpr const char* kResultEvent = "result";

std::span<const ProtocolScenario> protocol_scenarios();
/// Throws where there is none.
const ProtocolScenario& find_scenario(const std::string& name);

/// One decode step over two layers; small enough for every schedule.
Scenario tiny_decode();
/// Decode steps between the layers of a pass that unmaps its region on the copy stream: not allowed, since
/// two streams write the slot map then.
Scenario decode_inside_layer_invalidation(const ProtocolMutations& mutations);

}  // namespace sluice
