// Rates that are learned from passes.
#include "experts/pass_rates.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

// 3 ms a pass and 0.1 ms a token; 1000 bytes a ms.
double compute(int64_t rows) { return 3 + 0.1 * static_cast<double>(rows); }

RateLearner learner(bool overlap = true) {
  RateLearner result(overlap);
  result.add_copy(5000, 5);
  return result;
}

TEST(RateLearner, TakesTheLinksRateFromCopiesAlone) {
  RateLearner rates = learner();
  EXPECT_DOUBLE_EQ(rates.rates().link_bytes_per_ms, 1000);
  rates.add_pass({PassWay::kStream, 10, 100'000, 250});
  EXPECT_DOUBLE_EQ(rates.rates().link_bytes_per_ms, 1000);
  for (int i = 0; i < 40; ++i) rates.add_copy(2000, 1);
  EXPECT_NEAR(rates.rates().link_bytes_per_ms, 2000, 1);
  rates.add_copy(0, 1);
  rates.add_copy(1, 0);
  EXPECT_NEAR(rates.rates().link_bytes_per_ms, 2000, 1);
}

TEST(RateLearner, LetsOneCopyCountForAQuarter) {
  RateLearner rates = learner();
  rates.add_copy(5000, 1);
  EXPECT_DOUBLE_EQ(rates.rates().link_bytes_per_ms, 2000);
}

TEST(RateLearner, ForgetsWhatPassesTookBeforeTheMachineChanged) {
  RateLearner rates = learner();
  for (int i = 0; i < 40; ++i) rates.add_pass({PassWay::kTouched, 20 + i % 2, 0, 100});
  for (int i = 0; i < 40; ++i) rates.add_pass({PassWay::kTouched, 20 + i % 2, 0, 10});
  EXPECT_NEAR(rates.rates().compute_ms(20), 10, 2);
}

TEST(RateLearner, TellsWhatAPassTakesFromWhatItsTokensTake) {
  RateLearner rates = learner();
  for (const int64_t rows : {4, 12, 40, 12, 100}) {
    rates.add_pass({PassWay::kTouched, rows, 20'000, 20 + compute(rows)});
  }
  EXPECT_NEAR(rates.rates().compute_ms_per_pass, 3, 1e-6);
  EXPECT_NEAR(rates.rates().compute_ms_per_token, 0.1, 1e-6);
}

TEST(RateLearner, KnowsAProportionFromOneLength) {
  RateLearner rates = learner();
  for (int i = 0; i < 3; ++i) rates.add_pass({PassWay::kTouched, 20, 0, compute(20)});
  EXPECT_NEAR(rates.rates().compute_ms(20), 5, 1e-9);
  EXPECT_NEAR(rates.rates().compute_ms(40), 10, 1e-9);
}

TEST(RateLearner, AStreamThatWaitsForTheLinkSaysOnlyThatComputeIsNoLonger) {
  RateLearner rates = learner();
  rates.add_pass({PassWay::kStream, 100, 100'000, 104});
  EXPECT_EQ(rates.rates().compute_ms(100), 0) << "nothing is known yet";
  rates.add_pass({PassWay::kTouched, 100, 0, 500});
  rates.add_pass({PassWay::kStream, 100, 100'000, 104});
  EXPECT_LT(rates.rates().compute_ms(100), 500);
  const double known = 50;
  RateLearner quick = learner();
  quick.add_pass({PassWay::kTouched, 100, 0, known});
  quick.add_pass({PassWay::kLayerMajor, 100, 100'000, 104});
  EXPECT_DOUBLE_EQ(quick.rates().compute_ms(100), known);
}

TEST(RateLearner, AStreamThatComputesLongerThanTheLinkShowsItsCompute) {
  RateLearner rates = learner();
  rates.add_pass({PassWay::kLayerMajor, 1000, 10'000, 80});
  EXPECT_DOUBLE_EQ(rates.rates().compute_ms(1000), 80);
}

TEST(RateLearner, WhereNothingOverlapsTheLinkIsTakenOff) {
  RateLearner rates = learner(false);
  rates.add_pass({PassWay::kStream, 100, 100'000, 130});
  EXPECT_DOUBLE_EQ(rates.rates().compute_ms(100), 30);
  EXPECT_FALSE(rates.rates().overlap);
}

TEST(RateLearner, LearnsHowManyExpertsPromptsTouch) {
  const ExpertShape shape{.layers = 10, .experts = 100, .top_k = 4};
  RateLearner rates = learner();
  EXPECT_DOUBLE_EQ(rates.rates().spread, kUsualSpread);
  rates.add_distinct(shape, 1, 4);  // tells nothing
  EXPECT_DOUBLE_EQ(rates.rates().spread, kUsualSpread);
  rates.add_distinct(shape, 50, distinct_experts(shape, 0.8, 50));
  EXPECT_NEAR(rates.rates().spread, 0.8, 1e-9);  // the first count replaces what is usual
  rates.add_distinct(shape, 50, distinct_experts(shape, 0.4, 50));
  EXPECT_NEAR(rates.rates().spread, 0.7, 1e-9);
  for (int i = 0; i < 40; ++i) rates.add_distinct(shape, 30, distinct_experts(shape, 0.5, 30));
  EXPECT_NEAR(rates.rates().spread, 0.5, 1e-3);
}

TEST(RateLearner, LearnsThatResidentsAreTheWantedOnes) {
  RateLearner rates = learner();
  EXPECT_DOUBLE_EQ(rates.rates().absence, 1);
  rates.add_absence(0.5, 0);  // nothing was absent: tells nothing
  EXPECT_DOUBLE_EQ(rates.rates().absence, 1);
  rates.add_absence(0.2, 0.4);
  EXPECT_DOUBLE_EQ(rates.rates().absence, 0.5);
  rates.add_absence(0.4, 0.4);
  EXPECT_DOUBLE_EQ(rates.rates().absence, 0.625);
  for (int i = 0; i < 60; ++i) rates.add_absence(1, 0.1);
  EXPECT_NEAR(rates.rates().absence, 2, 1e-6);  // no more, whatever one prompt did
}

TEST(RateLearner, NeverLearnsANegativeTime) {
  RateLearner rates = learner();
  rates.add_pass({PassWay::kTouched, 4, 100'000, 1});
  rates.add_pass({PassWay::kTouched, 100, 0, 8});
  rates.add_pass({PassWay::kTouched, 50, 0, 90});
  rates.add_pass({PassWay::kTouched, 400, 0, 2});
  for (const int64_t rows : {1, 10, 1000}) EXPECT_GE(rates.rates().compute_ms(rows), 0);
  EXPECT_GE(rates.rates().compute_ms_per_pass, 0);
  EXPECT_GE(rates.rates().compute_ms_per_token, 0);
}

}  // namespace
}  // namespace sluice
