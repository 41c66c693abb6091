// What `sluice plan` prints, for people and as JSON.
#pragma once

#include <cstdio>
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
  double arms_link_share = 0;  // of the last arm's time, the link is busy
  uint64_t row_bytes = 0;      // of an expert
};

/// A card of --simulate.
struct PlannedCard {
  std::string name;
  uint64_t bytes = 0;
  CardFit fit;
  std::optional<Forecast> forecast;  // where the plan fits
};

/// The lines of the plan, and for each card whether it fits.
void print_memory(std::FILE* out, const MemoryPlan& plan, const std::vector<PlannedCard>& cards);
void print_forecasts_head(std::FILE* out, const SimulatedRequest& request);
/// The line of a card that has a forecast.
void print_forecast(std::FILE* out, const PlannedCard& card);
std::string plan_json(const MemoryPlan& plan, const std::vector<PlannedCard>& cards);

}  // namespace sluice::apps
