// Generated router scores follow the statistics that their description states.
#include "kernels/generated_routes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "device/device.h"
#include "kernels/router.h"

namespace sluice::testing {
namespace {

constexpr int64_t kExperts = 256, kTopK = 8, kLayers = 6;

class GeneratedRoutes : public ::testing::Test {
 protected:
  GeneratedRoutes() { generator_.topic = &topic_; }

  std::vector<float> scores(int64_t layer, int64_t first, int64_t rows, bool forecast) {
    std::vector<int32_t> positions(static_cast<size_t>(rows)), ids(positions.size());
    std::iota(positions.begin(), positions.end(), static_cast<int32_t>(first));
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = positions[i] * 7919 % 1000;
    std::vector<float> logits(static_cast<size_t>(rows * kExperts));
    generate_router_logits(*stream_, generator_, layer, ids.data(), positions.data(), rows, kExperts,
                           forecast, logits.data());
    return logits;
  }
  /// [rows, k]
  std::vector<int32_t> routes(int64_t layer, int64_t first, int64_t rows, bool forecast = false) {
    const std::vector<float> logits = scores(layer, first, rows, forecast);
    std::vector<int32_t> ids(static_cast<size_t>(rows * kTopK));
    std::vector<float> weights(ids.size());
    router_top_k(*stream_, logits.data(), rows, kExperts, kTopK, true, ids.data(), weights.data());
    return ids;
  }
  double distinct(int64_t tokens) {
    size_t sum = 0;
    for (int64_t l = 0; l < kLayers; ++l) {
      const std::vector<int32_t> ids = routes(l, 0, tokens);
      sum += std::set<int32_t>(ids.begin(), ids.end()).size();
    }
    return static_cast<double>(sum) / static_cast<double>(kLayers * kExperts);
  }

  const std::unique_ptr<Device> device_ = make_host_device(2);
  const std::unique_ptr<Stream> stream_ = device_->make_stream();
  int32_t topic_ = 0;
  RouteGenerator generator_;
};

TEST_F(GeneratedRoutes, PromptsTouchAsManyExpertsAsPublished) {
  EXPECT_NEAR(distinct(67), 0.39, 0.06);
  EXPECT_NEAR(distinct(328), 0.63, 0.06);
  EXPECT_NEAR(distinct(1022), 0.78, 0.06);
}

TEST_F(GeneratedRoutes, ForecastsFindFourOfFiveExperts) {
  double found = 0, all = 0;
  for (int64_t l = 1; l < kLayers; ++l) {
    for (int64_t p = 0; p < 100; ++p) {
      const std::vector<int32_t> want = routes(l, p, 1), guess = routes(l, p, 1, true);
      for (const int32_t id : guess) found += std::count(want.begin(), want.end(), id);
      all += kTopK;
    }
  }
  EXPECT_NEAR(found / all, 0.82, 0.05);
}

TEST_F(GeneratedRoutes, DecodeStepsRepeatAQuarterOfTheLastOnes) {
  double again = 0, all = 0;
  for (int64_t l = 0; l < kLayers; ++l) {
    std::vector<int32_t> last = routes(l, 0, 1);
    for (int64_t p = 1; p < 200; ++p) {
      const std::vector<int32_t> now = routes(l, p, 1);
      for (const int32_t id : now) again += std::count(last.begin(), last.end(), id);
      all += kTopK;
      last = now;
    }
  }
  EXPECT_NEAR(again / all, 0.25, 0.07);
}

TEST_F(GeneratedRoutes, DependOnThePositionNotOnTheBatch) {
  const std::vector<float> all = scores(3, 20, 40, false);
  const std::vector<float> part = scores(3, 33, 12, false);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + 13 * kExperts));
}

TEST_F(GeneratedRoutes, ChangeWithTopicSeedAndLayer) {
  const std::vector<int32_t> base = routes(1, 0, 50);
  topic_ = 1;
  EXPECT_NE(routes(1, 0, 50), base);
  topic_ = 0;
  EXPECT_EQ(routes(1, 0, 50), base);
  EXPECT_NE(routes(2, 0, 50), base);
  generator_.seed = 2;
  EXPECT_NE(routes(1, 0, 50), base);
}

}  // namespace
}  // namespace sluice::testing
