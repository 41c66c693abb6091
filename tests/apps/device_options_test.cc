// Where a model runs, and the bench of the link, on a machine without a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "apps/program.h"

namespace sluice::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kModel = SLUICE_SOURCE_DIR "/tests/golden/qwen3_moe";

Outcome eval(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"eval", "--model", kModel, "--ids", "-"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_program(arguments, "[1, 2, 3]");
}

TEST(DeviceOption, WhatIsNoDeviceIsWrongUsage) {
  for (const char* device : {"gpu", "cuda:", "cuda:x", "cuda:-1", "cuda0", "CPU", "cuda:1:2"}) {
    const Outcome outcome = eval({"--device", device});
    EXPECT_EQ(outcome.exit_code, 2) << device;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr(std::string("--device ") + device), HasSubstr("cuda:N")));
  }
}

TEST(DeviceOption, TheCpuIsAlwaysThere) { EXPECT_EQ(eval({"--device", "cpu"}).exit_code, 0); }

TEST(DeviceOption, ALimitOfTheGpuMeansNothingToTheCpu) {
  const Outcome outcome = eval({"--device", "cpu", "--gpu-memory", "16GB"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--gpu-memory"));
}

TEST(DeviceOption, AGpuThatIsNotThereIsAnErrorThatSaysWhy) {
  const Outcome outcome = eval({"--device", "cuda:4000"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err,
              ::testing::AnyOf(HasSubstr("built without CUDA"), HasSubstr("driver"), HasSubstr("not there")));
}

TEST(BenchLink, PrintsEachRateBesideThatOfAPlainCopy) {
  const Outcome outcome =
      run_program({"bench", "link", "--device", "cpu", "--bytes", "64MiB", "--rounds", "2", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json.at("rates").at(0).at("what"), "plain copy");
  EXPECT_EQ(json.at("rates").at(0).at("share_of_plain"), 1.0);
  EXPECT_EQ(json.at("rates").size(), 10u);
  for (const auto& row : json.at("rates")) {
    EXPECT_GT(row.at("lowest").get<double>(), 0);
    EXPECT_LE(row.at("lowest"), row.at("bytes_per_s"));
    EXPECT_LE(row.at("bytes_per_s"), row.at("highest"));
  }
  EXPECT_EQ(json.at("ensure_us").size(), 3u);
}

TEST(BenchLink, SizesThatCannotBeMovedAreWrongUsage) {
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"--row-bytes", "17"},
                                                {"--bytes", "1KB"},
                                                {"--bytes", "much"},
                                                {"--rounds", "0"}}) {
    const Outcome outcome = run_program({"bench", "link", wrong[0], wrong[1]});
    EXPECT_EQ(outcome.exit_code, 2) << wrong[0];
    EXPECT_THAT(outcome.err, HasSubstr(wrong[0]));
  }
}

}  // namespace
}  // namespace sluice::testing
