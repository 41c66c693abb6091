// Ranking the next layer's experts.
#include "experts/forecast.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "device/device.h"
#include "random_values.h"

namespace sluice {
namespace {

using Ids = std::vector<int32_t>;

Ids ranked(const std::vector<float>& logits, int64_t rows, int64_t top_k) {
  const auto device = make_host_device(1);
  const auto stream = device->make_stream();
  const auto experts = static_cast<int64_t>(logits.size()) / rows;
  Ids ids(static_cast<size_t>(experts), -7);
  rank_forecast(*stream, logits.data(), rows, experts, top_k, ids.data());
  return ids;
}

TEST(Forecast, OneRowGivesItsHighestInOrderAndPadding) {
  EXPECT_EQ(ranked({0.5f, 2, -1, 3, 1}, 1, 1), (Ids{3, 1, -1, -1, -1}));  // twice k
  EXPECT_EQ(ranked({0.5f, 2, -1, 3, 1}, 1, 2), (Ids{3, 1, 4, 0, -1}));
  EXPECT_EQ(ranked({0.5f, 2, -1, 3, 1}, 1, 5), (Ids{3, 1, 4, 0, 2}));
  EXPECT_EQ(ranked({0.5f, 2, -1}, 1, 9), (Ids{1, 0, 2}));  // k above the experts
}

TEST(Forecast, TiesGoToTheLowerId) {
  EXPECT_EQ(ranked({1, 2, 2, 1, 2}, 1, 2), (Ids{1, 2, 4, 0, -1}));
  EXPECT_EQ(ranked({0, 0, 0, 0}, 1, 1), (Ids{0, 1, -1, -1}));
}

TEST(Forecast, RowsTakeTurnsAndRepeatsAreLeftOut) {
  const std::vector<float> logits = {9, 8, 7, 0, 0, 0,  //
                                     0, 9, 0, 8, 7, 0};
  EXPECT_EQ(ranked(logits, 2, 2), (Ids{0, 1, 3, 2, 4, -1}));
  EXPECT_EQ(ranked(logits, 2, 1), (Ids{0, 1, 3, -1, -1, -1}));
}

TEST(Forecast, OnlyTheFirstEightRowsCount) {
  constexpr int64_t kExperts = 12;
  std::vector<float> logits(static_cast<size_t>(10 * kExperts));
  for (int64_t r = 0; r < 10; ++r) logits[static_cast<size_t>(r * kExperts + 11 - r)] = 1;
  EXPECT_EQ(ranked(logits, 10, 1), (Ids{11, 10, 9, 8, 7, 6, 5, 4, 0, -1, -1, -1}));
}

TEST(Forecast, RandomRowsGiveTheUnionOfTheirBest) {
  RandomValues random(61);
  SCOPED_TRACE(random.trace());
  for (int run = 0; run < 200; ++run) {
    const int64_t rows = random.integer(1, 8), experts = random.integer(1, 40);
    const int64_t k = random.integer(1, experts);
    std::vector<float> logits;
    for (int64_t i = 0; i < rows * experts; ++i) logits.push_back(static_cast<float>(random.integer(0, 9)));
    Ids expected(static_cast<size_t>(experts), -1);
    size_t count = 0;
    for (int64_t rank = 0; rank < std::min(2 * k, experts); ++rank) {
      for (int64_t r = 0; r < rows; ++r) {
        Ids order(static_cast<size_t>(experts));
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
          return logits[static_cast<size_t>(r * experts + a)] > logits[static_cast<size_t>(r * experts + b)];
        });
        const int32_t id = order[static_cast<size_t>(rank)];
        if (std::count(expected.begin(), expected.end(), id) == 0) expected[count++] = id;
      }
    }
    ASSERT_EQ(ranked(logits, rows, k), expected) << "run " << run;
  }
}

}  // namespace
}  // namespace sluice
