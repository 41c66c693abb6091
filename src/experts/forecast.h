// Which experts the next layer will probably want.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "device/stream.h"

namespace sluice {

/// The experts of the next layer in order of preference, from its router's logits [rows, experts] on this
/// layer's input: first each row's highest, then each row's second, and so on for 2 top_k ranks; repeats are
/// left out. Only the first 8 rows count: with more the union is no forecast any more. `ids` [experts] is
/// filled up with -1.
void rank_forecast(Stream& stream, const float* logits, int64_t rows, int64_t experts, int64_t top_k,
                   int32_t* ids);

inline constexpr int kForecastRanks = 16;

/// How good the forecasts of one layer were.
struct ForecastCounters {
  uint64_t calls = 0;   // forecasts that were compared
  uint64_t wanted = 0;  // distinct experts that the layer routed to after a forecast
  std::array<uint64_t, kForecastRanks> at_rank{};  // of those, which rank in the forecast they had
  /// The share of wanted experts among the first n of the forecast.
  double recall(int n) const;
};

/// How often the expert at each rank of a forecast was wanted [kForecastRanks], over all layers; empty before
/// the first comparison.
std::vector<double> wanted_by_rank(std::span<const ForecastCounters> layers);

/// Compares what layer routed to (ids [n], -1 is padding) with its `forecast` [experts] of the layer before.
void count_forecast(Stream& stream, const int32_t* ids, int64_t n, int64_t experts, const int32_t* forecast,
                    ForecastCounters* counters);

}  // namespace sluice
