// `sluice synth`, and the benches on random weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "apps/program.h"
#include "base/temporary_folder.h"

namespace sluice::testing {
namespace {

using ::testing::HasSubstr;

TEST(SynthCommand, WritesAModelThatRuns) {
  const TemporaryFolder folder;
  const std::string out = (folder / "random").string();
  const Outcome written =
      run_program({"synth", "--shape", "tiny", "--format", "mxfp4", "--layers", "2", "--out", out});
  ASSERT_EQ(written.exit_code, 0) << written.err;
  EXPECT_THAT(written.out, HasSubstr("2 layers, experts in mxfp4"));
  const Outcome ran = run_program({"eval", "--model", out, "--ids", "-"}, "[1, 2, 3, 4, 5]");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  expect_refusal({"synth", "--shape", "tiny", "--out", out}, {out, "exists already"});
}

TEST(BenchDecode, SaysThatRoutesAreGeneratedAndCountsBothWays) {
  const Outcome outcome =
      run_program({"bench", "decode", "--synth", "tiny", "--expert-slots", "50%", "--tokens", "12",
                   "--warm-tokens", "4", "--prompt-tokens", "9", "--rounds", "1", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json.at("routes"), "generated");
  EXPECT_EQ(json.at("slots"), 32);
  ASSERT_EQ(json.at("ways").size(), 2u);
  for (const auto& way : json.at("ways")) {
    // 4 layers of 4 experts a token.
    EXPECT_LE(way.at("misses_per_token"), 16.0);
    EXPECT_NEAR(static_cast<double>(way.at("hit_rate")),
                1 - static_cast<double>(way.at("misses_per_token")) / 16, 0.01);
    EXPECT_GT(way.at("ms_per_token"), 0);
  }
  const auto& off = json.at("ways")[0];
  EXPECT_EQ(off.at("lookahead"), "off");
  EXPECT_EQ(off.at("predicted_bytes_per_token"), 0);
  EXPECT_GT(off.at("demand_bytes_per_token"), 0);
}

TEST(BenchPrefill, ComparesWithTheBytesThatWereNeeded) {
  const Outcome outcome = run_program({"bench", "prefill", "--synth", "tiny", "--expert-slots", "50%",
                                       "--prompts", "5,40", "--rounds", "1", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(json.at("prompts").size(), 2u);
  EXPECT_EQ(json.at("prompts")[1].at("tokens"), 40);
  for (const auto& prompt : json.at("prompts")) {
    EXPECT_GT(prompt.at("distinct_experts"), 0.1);
    EXPECT_GE(prompt.at("moved_bytes"), prompt.at("needed_bytes")) << "what was not there has to come";
  }
  EXPECT_LT(json.at("prompts")[0].at("distinct_experts"), json.at("prompts")[1].at("distinct_experts"));
}

TEST(BenchPrefill, RefusesLengthsThatAreNone) {
  for (const char* prompts : {"0", "-3", "12x", "1000000000"}) {
    expect_wrong_usage({"bench", "prefill", "--synth", "tiny", "--prompts", prompts}, {"--prompts", prompts});
  }
}

TEST(BenchKernels, TimesEachProductForEachNumberOfRows) {
  const Outcome outcome = run_program({"bench", "kernels", "--synth", "tiny", "--format", "mxfp4", "--rows",
                                       "1,20", "--rounds", "1", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto all = nlohmann::json::parse(outcome.out);
  const auto& json = all.at("products");
  ASSERT_EQ(json.size(), 10u);
  for (const auto& product : json) {
    EXPECT_GT(product.at("us"), 0);
    EXPECT_GT(product.at("tflops"), 0);
    EXPECT_GT(product.at("weights_gbps"), 0);
  }
  EXPECT_EQ(json[3].at("product"), "experts, mxfp4");
  EXPECT_EQ(json[8].at("rows"), 20);
  EXPECT_EQ(json[9].at("rows"), 80);  // four experts a row
  for (const char* rows : {"0", "8193", "2x", ""}) {
    expect_wrong_usage({"bench", "kernels", "--synth", "tiny", "--rows", rows}, {"--rows"});
  }
}

TEST(BenchDecode, NeedsSlotsWhereNothingElseLimitsThem) {
  expect_refusal({"bench", "decode", "--synth", "tiny"}, {"--expert-slots"});
}

}  // namespace
}  // namespace sluice::testing
