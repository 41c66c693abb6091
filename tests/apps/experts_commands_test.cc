// `sluice bench experts` and `sluice plan` on the demo model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "apps/program.h"

namespace sluice::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(BenchExperts, CountsHitsMissesAndTheForecastsRecall) {
  const Outcome outcome = run_program(
      {"bench", "experts", "--model", demo_model(), "--expert-slots", "128", "--max-tokens", "60", "--json"},
      "The function returns a list of the names in the current scope.");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto runs = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(runs.size(), 3u);
  const auto &off = runs[0], &on = runs[1], &measure = runs[2];
  EXPECT_TRUE(off.at("tokens").is_number_integer()) << off.at("tokens");
  EXPECT_EQ(off.at("predicted_per_token"), 0);
  EXPECT_GT(on.at("predicted_per_token"), 0);
  EXPECT_LT(on.at("misses_per_token"), off.at("misses_per_token"));
  EXPECT_EQ(measure.at("misses_per_token"), off.at("misses_per_token")) << "measuring must not fetch";
  EXPECT_LT(on.at("predicted_used_per_token"), on.at("predicted_per_token"));
  EXPECT_GT(on.at("predicted_used_per_token"), 0);
  EXPECT_TRUE(off.at("layers")[1].at("recall_4").is_null()) << "nothing was forecast";
  EXPECT_TRUE(measure.at("layers")[0].at("recall_8").is_null()) << "nothing comes before the first layer";
  for (size_t l = 1; l < 8; ++l) {
    const auto& layer = measure.at("layers")[l];
    EXPECT_GT(layer.at("recall_4"), 0.2) << "chance is 0.06";
    EXPECT_LE(layer.at("recall_4"), layer.at("recall_6"));
    EXPECT_LE(layer.at("recall_6"), layer.at("recall_8"));
  }
}

TEST(BenchExperts, NeedsSlots) {
  expect_wrong_usage({"bench", "experts", "--model", demo_model()}, {"--expert-slots"}, "text");
}

TEST(BenchCpu, TimesThreeSettingsAndPrintsTheVerdict) {
  const Outcome outcome = run_program({"bench", "cpu", "--model", demo_model(), "--expert-slots", "64",
                                       "--max-tokens", "20", "--rounds", "1", "--link-gbps", "1"},
                                      "The function returns a list of the names in the current scope.");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* part : {"1 round, link 1.0", "\noff ", "\nauto ", "\nalways ", "measuring"}) {
    EXPECT_THAT(outcome.out, HasSubstr(part));
  }
  EXPECT_THAT(outcome.out, HasSubstr("100.0 %")) << "always computes every miss";
}

TEST(BenchCpu, RunsTheTextAsAPromptWhereAQuarterIsAlwaysLeftToTheCpu) {
  const Outcome outcome = run_program({"bench", "cpu", "--model", demo_model(), "--expert-slots", "16",
                                       "--rounds", "1", "--as-prompt", "--prefill-mode", "stream"},
                                      "The function returns a list of the names in the current scope.");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("25.0 %")) << "no slot holds an expert before the only pass";
}

TEST(BenchCpu, NeedsSlots) {
  expect_wrong_usage({"bench", "cpu", "--model", demo_model(), "--expert-slots", "64", "--prefill-mode",
                      "stream", "--text", demo_model() + "/config.json"},
                     {"--prefill-mode has no effect without --as-prompt"});
  expect_wrong_usage({"bench", "cpu", "--model", demo_model(), "--text", demo_model() + "/config.json"},
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

TEST(Plan, SaysWhereTheArmsTellLittle) {
  const auto arms = [](const Arguments& of) {
    Arguments plan = {"plan", "--simulate", "published", "--prompt-tokens", "64", "--tokens", "1"};
    plan.insert(plan.end(), of.begin(), of.end());
    return run_program(plan).out;
  };
  EXPECT_THAT(arms({"--model", demo_model(), "--expert-slots", "25%"}),
              HasSubstr("launches take longer than copies"));
  EXPECT_THAT(arms({"--shape", "q36"}), Not(HasSubstr("launches take longer")));
}

TEST(Plan, NeedsAModelOrAShapeAndKnowsItsShapes) {
  expect_wrong_usage({"plan"}, {"either --model or --shape"});
  expect_wrong_usage({"plan", "--model", demo_model(), "--shape", "q36"}, {"either --model or --shape"});
  expect_wrong_usage({"plan", "--shape", "q99"}, {"known are q36, q30"});
}

TEST(Plan, ASimulationWithExpertsOnTheCpuIsRefused) {
  expect_wrong_usage({"plan", "--model", demo_model(), "--expert-slots", "64", "--simulate", "rtx5070ti",
                      "--cpu-experts", "always"},
                     {"--cpu-experts off"});
}

TEST(Plan, AnUnknownCardIsRefusedWithTheKnownOnes) {
  expect_wrong_usage({"plan", "--model", demo_model(), "--simulate", "abacus"}, {"abacus", "h200"});
}

TEST(Plan, WhatDoesNotFitIsNamedWithWhatWouldAndHasNoForecast) {
  const Arguments plan = {"plan",           "--shape",         "q36", "--expert-slots", "all", "--simulate",
                          "published,h200", "--prompt-tokens", "20",  "--tokens",       "2"};
  const Outcome outcome = run_program(plan);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("DOES NOT FIT: needs"));
  EXPECT_THAT(outcome.out, HasSubstr("fits: needs"));
  const std::string forecasts = outcome.out.substr(outcome.out.find("card          slots"));
  EXPECT_THAT(forecasts, Not(HasSubstr("\npublished ")));
  EXPECT_THAT(outcome.out, HasSubstr("\nh200          10240 "));
  EXPECT_THAT(outcome.err, HasSubstr("sluice: published: does not fit: needs "));
  EXPECT_THAT(outcome.err, HasSubstr("over at \"expert slots\"; would fit: --expert-slots "));
  // What it says would fit does, and one slot more does not.
  const size_t at = outcome.err.find("--expert-slots ") + 15;
  const int64_t slots = std::stoll(outcome.err.substr(at));
  for (const int64_t more : {0, 1}) {
    Arguments again = plan;
    again[4] = std::to_string(slots + more);
    again[6] = "published";
    EXPECT_EQ(run_program(again).exit_code, more) << slots;
  }
}

// A GPU of the size of a simulated card has room for as many slots; a larger card that acts as one too.
TEST(Plan, AGpuOfAGivenMemoryIsPlannedForWithoutAForecast) {
  const auto slots = [](const Arguments& which, bool forecast) {
    Arguments plan = {"plan", "--shape", "q36", "--context", "4096", "--json"};
    plan.insert(plan.end(), which.begin(), which.end());
    if (forecast) plan.insert(plan.end(), {"--prompt-tokens", "20", "--tokens", "2"});
    const Outcome outcome = run_program(plan);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const auto json = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(json.at("cards").size(), 1u);
    EXPECT_EQ(json.at("cards")[0].contains("forecast"), forecast);
    return json.at("cards")[0].at("slots").get<int64_t>();
  };
  const int64_t planned = slots({"--gpu-memory", "16GB"}, false);
  EXPECT_GT(planned, 3000);
  EXPECT_EQ(slots({"--simulate", "published"}, true), planned);
  EXPECT_EQ(slots({"--simulate", "h200", "--gpu-memory", "16GB"}, true), planned);
  const Outcome small = run_program({"plan", "--shape", "q36", "--gpu-memory", "2GB"});
  EXPECT_EQ(small.exit_code, 1);
  EXPECT_THAT(small.err, HasSubstr("GPU: does not fit: needs "));
  expect_wrong_usage({"plan", "--shape", "q36", "--gpu-memory", "much"}, {"--gpu-memory much"});
}

TEST(Plan, PrintsOneJsonObject) {
  const Outcome outcome =
      run_program({"plan", "--shape", "q36", "--context", "131072", "--expert-slots", "9000", "--simulate",
                   "published,h200", "--prompt-tokens", "20", "--tokens", "2", "--json"});
  EXPECT_EQ(outcome.exit_code, 1);
  const auto json = nlohmann::json::parse(outcome.out);
  uint64_t bytes = 0;
  for (const auto& line : json.at("lines")) {
    if (line.at("place") == "device") bytes += line.at("bytes").get<uint64_t>();
  }
  const auto &small = json.at("cards").at(0), &large = json.at("cards").at(1);
  EXPECT_EQ(small.at("needs_bytes"), bytes);
  EXPECT_EQ(small.at("fits"), false);
  EXPECT_FALSE(small.contains("forecast"));
  EXPECT_EQ(small.at("over"), "expert slots");
  EXPECT_FALSE(small.at("would_fit").empty());
  EXPECT_EQ(large.at("fits"), true);
  EXPECT_GT(large.at("forecast").at("tokens_per_s"), 0);
  EXPECT_EQ(large.at("forecast").at("arms_ttft_ms").size(), 4u);
}

TEST(Plan, APromptLongerThanThePositionsIsRefusedBeforeAnythingIsPrinted) {
  for (const Arguments& of : {Arguments{"--model", demo_model()}, Arguments{"--shape", "q36"}}) {
    Arguments plan = {"plan", "--simulate", "h200", "--prompt-tokens", "10000000"};
    plan.insert(plan.end(), of.begin(), of.end());
    expect_refusal(plan, {"--prompt-tokens 10000000", "do not fit the context of"});
  }
}

}  // namespace
}  // namespace sluice::testing
