// The cost model of passes.
#include "experts/pass_cost.h"

#include <algorithm>
#include <cmath>

namespace sluice {

std::string_view name_of(PassWay way) {
  switch (way) {
    case PassWay::kEnsure:
      return "ensure";
    case PassWay::kTouched:
      return "touched";
    case PassWay::kStream:
      return "stream";
  }
  return "unknown";
}

double distinct_experts(const ExpertShape& shape, int64_t rows) {
  const auto experts = static_cast<double>(shape.experts);
  return experts * (1 - std::pow(1 - static_cast<double>(shape.top_k) / experts, static_cast<double>(rows)));
}

PassForecast forecast(PassWay way, const ExpertShape& shape, const PassRates& rates,
                      const PassQuestion& question) {
  const auto all = static_cast<double>(shape.layers * shape.experts);
  const double absent =
      all - static_cast<double>(std::min<int64_t>(question.resident_rows, shape.layers * shape.experts));
  const double wanted = way == PassWay::kStream
                            ? all
                            : static_cast<double>(shape.layers) * distinct_experts(shape, question.rows);
  PassForecast result;
  result.way = way;
  result.bytes = wanted * absent / all * static_cast<double>(question.row_bytes);
  const double link = rates.link_bytes_per_ms > 0 ? result.bytes / rates.link_bytes_per_ms : 0;
  const double compute = rates.compute_ms_per_token * static_cast<double>(question.rows);
  // Streamed copies run beside the products; a gather starts when the routes are known, and the products wait
  // for it.
  result.ms = way == PassWay::kStream ? std::max(link, compute) : link + compute;
  return result;
}

PassForecast choose_way(PrefillMode mode, const ExpertShape& shape, const PassRates& rates,
                        const PassQuestion& question) {
  PassForecast best = forecast(PassWay::kStream, shape, rates, question);
  const auto consider = [&](PassWay way) {
    const PassForecast other = forecast(way, shape, rates, question);
    // A tie goes against streaming, which empties its region.
    if (other.ms <= best.ms || mode == PrefillMode::kTouched) best = other;
  };
  if (mode == PrefillMode::kStream) return best;
  if (question.ensure_fits) {
    consider(PassWay::kEnsure);
  } else if (question.touched_fits) {
    consider(PassWay::kTouched);
  }
  return best;
}

}  // namespace sluice
