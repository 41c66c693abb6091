// What `sluice plan` prints, for people and as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/plan_memory.h"
#include "engine/simulation.h"

namespace sluice::apps {

/// What a card would do; the arms are in the order of published_arms().
struct Forecast {
  int64_t slots = 0;
  SimulatedRun run;
  std::vector<double> arms_ttft_ms;
};

/// A card of --simulate.
struct PlannedCard {
  std::string name;
  uint64_t bytes = 0;
  CardFit fit;
  std::optional<Forecast> forecast;  // where the plan fits
};

/// The lines of the plan, and for each card whether it fits.
void print_memory(const MemoryPlan& plan, const std::vector<PlannedCard>& cards);
void print_forecasts_head(const SimulatedRequest& request);
/// The line of a card that has a forecast.
void print_forecast(const PlannedCard& card);
std::string plan_json(const MemoryPlan& plan, const std::vector<PlannedCard>& cards);

}  // namespace sluice::apps
