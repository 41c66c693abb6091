// Ranking of forecasts on the host.
#include "experts/forecast.h"
#include "experts/cuda/expert_ops.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace sluice {

void rank_forecast(Stream& stream, const float* logits, int64_t rows, int64_t experts, int64_t top_k,
                   int32_t* ids) {
  constexpr int64_t kMostRows = 8;
  stream.launch_both(
      {.name = "rank_forecast",
       .reads = {range_of(logits, rows * experts)},
       .writes = {range_of(ids, experts)}},
      [=](const HostContext&) {
        const int64_t n = std::min(rows, kMostRows);
        const int64_t ranks = std::min(2 * top_k, experts);  // a budget may exceed top_k
        std::vector<std::vector<int32_t>> ranked(static_cast<size_t>(n));
        for (int64_t r = 0; r < n; ++r) {
          const float* row = logits + r * experts;
          auto& order = ranked[static_cast<size_t>(r)];
          order.resize(static_cast<size_t>(experts));
          std::iota(order.begin(), order.end(), 0);
          const auto middle = order.begin() + ranks;
          std::partial_sort(order.begin(), middle, order.end(),
                            [=](int32_t a, int32_t b) { return row[a] != row[b] ? row[a] > row[b] : a < b; });
          order.erase(middle, order.end());
        }
        std::vector<uint8_t> seen(static_cast<size_t>(experts));
        std::fill(ids, ids + experts, -1);
        int64_t count = 0;
        for (int64_t rank = 0; rank < ranks; ++rank) {
          for (const auto& order : ranked) {
            const int32_t id = order[static_cast<size_t>(rank)];
            if (std::exchange(seen[static_cast<size_t>(id)], uint8_t{1}) == 0) ids[count++] = id;
          }
        }
      },
      SLUICE_CUDA_OP(cuda::rank_forecast, logits, rows, experts, top_k, ids));
}

double ForecastCounters::recall(int n) const {
  uint64_t found = 0;
  for (int r = 0; r < std::min(n, kForecastRanks); ++r) found += at_rank[static_cast<size_t>(r)];
  return wanted == 0 ? 0 : static_cast<double>(found) / static_cast<double>(wanted);
}

std::vector<double> wanted_by_rank(std::span<const ForecastCounters> layers) {
  uint64_t calls = 0;
  std::vector<double> wanted(kForecastRanks);
  for (const ForecastCounters& layer : layers) {
    calls += layer.calls;
    for (size_t r = 0; r < wanted.size(); ++r) wanted[r] += static_cast<double>(layer.at_rank[r]);
  }
  if (calls == 0) return {};
  for (double& w : wanted) w /= static_cast<double>(calls);
  return wanted;
}

void count_forecast(Stream& stream, const int32_t* ids, int64_t n, int64_t experts, const int32_t* forecast,
                    ForecastCounters* counters) {
  stream.launch_both(
      {.name = "count_forecast",
       .reads = {range_of(ids, n), range_of(forecast, experts), range_of(counters, 1)},
       .writes = {range_of(counters, 1)}},
      [=](const HostContext&) {
        std::vector<uint8_t> wanted(static_cast<size_t>(experts));
        ++counters->calls;
        for (int64_t i = 0; i < n; ++i) {
          if (ids[i] >= 0) wanted[static_cast<size_t>(ids[i])] = 1;
        }
        counters->wanted += static_cast<uint64_t>(std::count(wanted.begin(), wanted.end(), 1));
        for (int64_t r = 0; r < std::min<int64_t>(kForecastRanks, experts); ++r) {
          if (forecast[r] >= 0 && wanted[static_cast<size_t>(forecast[r])] != 0) {
            ++counters->at_rank[static_cast<size_t>(r)];
          }
        }
      },
      SLUICE_CUDA_OP(cuda::count_forecast, ids, n, experts, forecast, counters));
}

}  // namespace sluice
