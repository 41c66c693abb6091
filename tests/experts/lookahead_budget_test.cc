// The budget of predictions follows machines whose rates are known.
#include "experts/lookahead_budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace sluice {
namespace {

constexpr ExpertShape kShape{.layers = 40, .experts = 256, .top_k = 8, .decode_rows = 1};

// A step in which each layer computes for `compute_ms`, misses `misses` experts where nothing is predicted,
// and where a share `precision` of the predictions saves a miss. What is predicted crosses beside the
// computation.
struct Machine {
  double compute_ms, row_ms, misses, precision;
  double noise = 0;

  StepSample step(int32_t budget, std::mt19937_64& random) const {
    const double saved = std::min(misses, budget * precision);
    const double link_ms = budget * row_ms;
    StepSample sample;
    sample.demand_rows = static_cast<int64_t>(kShape.layers * (misses - saved));
    sample.ms = kShape.layers * (std::max(compute_ms, link_ms) + (misses - saved) * row_ms);
    sample.ms *= 1 + noise * (std::uniform_real_distribution<double>(0, 1)(random));
    return sample;
  }
};

// Runs `steps` and returns the mean budget of the last half.
double run(LookaheadBudget& budget, const Machine& machine, int steps, std::mt19937_64& random) {
  double sum = 0;
  for (int i = 0; i < steps; ++i) {
    if (i >= steps / 2) sum += budget.now();
    budget.add(machine.step(budget.now(), random));
  }
  return sum / (steps - steps / 2);
}

class Budget : public testing::TestWithParam<double> {
 protected:
  std::mt19937_64 random_{41};
};

TEST_P(Budget, TakesWhatCrossesWhileALayerComputes) {
  const Machine machine{
      .compute_ms = 0.35, .row_ms = 0.05, .misses = 4, .precision = 0.5, .noise = GetParam()};
  LookaheadBudget budget(kShape, machine.row_ms);
  EXPECT_EQ(budget.now(), LookaheadBudget::kFirstGuess);
  const double mean = run(budget, machine, 4000, random_);
  EXPECT_TRUE(budget.pays());
  EXPECT_GT(mean, 5);
  EXPECT_LE(mean, 8);
}

TEST_P(Budget, GoesToZeroWherePredictionsHardlyEverCome) {
  const Machine machine{
      .compute_ms = 0.02, .row_ms = 0.05, .misses = 4, .precision = 0.02, .noise = GetParam()};
  LookaheadBudget budget(kShape, machine.row_ms);
  const double mean = run(budget, machine, 4000, random_);
  EXPECT_FALSE(budget.pays());
  EXPECT_LT(mean, 0.2);
}

TEST_P(Budget, ComesBackWhenTheMachineChanges) {
  Machine machine{.compute_ms = 0.02, .row_ms = 0.05, .misses = 4, .precision = 0.02, .noise = GetParam()};
  LookaheadBudget budget(kShape, machine.row_ms);
  run(budget, machine, 600, random_);
  ASSERT_FALSE(budget.pays());
  machine.compute_ms = 0.4;
  machine.precision = 0.6;
  run(budget, machine, 4000, random_);
  EXPECT_TRUE(budget.pays());
  EXPECT_GE(budget.now(), 1);
}

INSTANTIATE_TEST_SUITE_P(Noise, Budget, testing::Values(0.0, 0.05, 0.3));

TEST(LookaheadBudget, LeavesOutRanksThatAreHardlyEverWanted) {
  LookaheadBudget budget(kShape, 0.001);
  budget.learn_ranks(std::vector<double>{0.8, 0.5, 0.2, 0.05, 0.3});
  std::mt19937_64 random(41);
  const Machine machine{.compute_ms = 1, .row_ms = 0.001, .misses = 4, .precision = 0.5};
  run(budget, machine, 200, random);
  EXPECT_EQ(budget.now(), 3);
}

TEST(LookaheadBudget, LeavesThemOutAtOnce) {
  LookaheadBudget budget(kShape, 0.001);
  budget.learn_ranks(std::vector<double>{0.8, 0.5, 0.05, 0.3});
  EXPECT_EQ(budget.now(), 2);
}

TEST(LookaheadBudget, TrialsTakeAnEverSmallerShareOfSteadySteps) {
  std::mt19937_64 random(41);
  const Machine machine{.compute_ms = 0.35, .row_ms = 0.05, .misses = 4, .precision = 0.5};
  LookaheadBudget budget(kShape, machine.row_ms);
  int without = 0;
  constexpr int kSteps = 20000;
  for (int i = 0; i < kSteps; ++i) {
    without += i >= kSteps / 2 && budget.now() == 0;
    budget.add(machine.step(budget.now(), random));
  }
  EXPECT_GT(without, 0);
  EXPECT_LT(without, kSteps / 2 / 50);
}

TEST(LookaheadBudget, NeverAsksForMoreRanksThanAForecastHas) {
  const ExpertShape small{.layers = 2, .experts = 3, .top_k = 2, .decode_rows = 1};
  LookaheadBudget budget(small, 1e-9);
  EXPECT_EQ(budget.now(), 3);
  for (int i = 0; i < 200; ++i) {
    budget.add({.ms = 5, .demand_rows = 0});
    EXPECT_LE(budget.now(), 3);
  }
}

}  // namespace
}  // namespace sluice
