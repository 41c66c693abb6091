// `sluice bench experts` and `sluice plan` on the demo model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "apps/program.h"

namespace sluice::testing {
namespace {

using ::testing::HasSubstr;

TEST(BenchExperts, CountsHitsMissesAndTheForecastsRecall) {
  const Outcome outcome = run_program(
      {"bench", "experts", "--model", demo_model(), "--expert-slots", "128", "--max-tokens", "60", "--json"},
      "The function returns a list of the names in the current scope.");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto runs = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(runs.size(), 3u);
  const auto &off = runs[0], &on = runs[1], &measure = runs[2];
  EXPECT_EQ(off.at("predicted_per_token"), 0);
  EXPECT_GT(on.at("predicted_per_token"), 0);
  EXPECT_LT(on.at("misses_per_token"), off.at("misses_per_token"));
  EXPECT_EQ(measure.at("misses_per_token"), off.at("misses_per_token")) << "measuring must not fetch";
  for (size_t l = 1; l < 8; ++l) {
    const auto& layer = measure.at("layers")[l];
    EXPECT_GT(layer.at("recall_4"), 0.2) << "chance is 0.06";
    EXPECT_LE(layer.at("recall_4"), layer.at("recall_6"));
    EXPECT_LE(layer.at("recall_6"), layer.at("recall_8"));
  }
}

TEST(BenchExperts, NeedsSlots) {
  const Outcome outcome = run_program({"bench", "experts", "--model", demo_model()}, "text");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("--expert-slots"));
}

TEST(BenchCpu, TimesThreeSettingsAndPrintsTheVerdict) {
  const Outcome outcome = run_program({"bench", "cpu", "--model", demo_model(), "--expert-slots", "64",
                                       "--max-tokens", "20", "--rounds", "1", "--link-gbps", "1"},
                                      "The function returns a list of the names in the current scope.");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* part : {"1 rounds, link 1.0", "\noff ", "\nauto ", "\nalways ", "measuring"}) {
    EXPECT_THAT(outcome.out, HasSubstr(part));
  }
  EXPECT_THAT(outcome.out, HasSubstr("100.0 %")) << "always computes every miss";
}

TEST(BenchCpu, NeedsSlots) {
  expect_refusal({"bench", "cpu", "--model", demo_model(), "--text", demo_model() + "/config.json"},
                 {"--expert-slots"});
}

TEST(Plan, ForecastsKnownCardsTheSameEachTime) {
  const auto plan = [] {
    return run_program({"plan", "--model", demo_model(), "--expert-slots", "25%", "--simulate", "rtx5070ti",
                        "--prompt-tokens", "20", "--tokens", "2"});
  };
  const Outcome first = plan();
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("128 of 512 experts"));
  EXPECT_THAT(first.out, HasSubstr("rtx5070ti"));
  EXPECT_EQ(plan().out, first.out) << "the clock is simulated";
}

TEST(Plan, ForecastsTheSizesOfAPublishedModelWithoutItsWeights) {
  const Outcome outcome = run_program(
      {"plan", "--shape", "q36", "--simulate", "published", "--prompt-tokens", "20", "--tokens", "2"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("what the card has room for of 10240 experts"));
  EXPECT_THAT(outcome.out, HasSubstr("neither priority    epoch     both"));
}

TEST(Plan, NeedsAModelOrAShapeAndKnowsItsShapes) {
  EXPECT_THAT(run_program({"plan"}).err, HasSubstr("either --model or --shape"));
  EXPECT_THAT(run_program({"plan", "--model", demo_model(), "--shape", "q36"}).err,
              HasSubstr("either --model or --shape"));
  EXPECT_THAT(run_program({"plan", "--shape", "q99"}).err, HasSubstr("known are q36, q30"));
}

TEST(Plan, ASimulationWithExpertsOnTheCpuIsRefused) {
  expect_refusal({"plan", "--model", demo_model(), "--expert-slots", "64", "--simulate", "rtx5070ti",
                  "--cpu-experts", "always"},
                 {"--cpu-experts off"});
}

TEST(Plan, AnUnknownCardIsRefusedWithTheKnownOnes) {
  expect_refusal({"plan", "--model", demo_model(), "--simulate", "abacus"}, {"abacus", "h200"});
}

}  // namespace
}  // namespace sluice::testing
