// `--policies , --slots 64` took "--slots" for a policy, repeated counts repeated their rows, and variables
// that other options set were ignored.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "apps/program.h"

namespace sluice::testing {
namespace {

const std::string kTrace = SLUICE_SOURCE_DIR "/tests/golden/demo.trace";

TEST(Lists, HaveNoEmptyItems) {
  for (const char* list : {",", "64,", ",64", "64,,128"}) {
    const std::string said = std::string("--slots ") + list + ": an item of the list is empty";
    expect_wrong_usage({"trace", "replay", kTrace, "--slots", list}, {said});
    expect_wrong_usage({"trace", "replay", kTrace, std::string("--slots=") + list}, {said});
  }
  expect_wrong_usage({"trace", "replay", kTrace, "--policies", ",", "--slots", "64"},
                     {"--policies ,: an item of the list is empty"});
  expect_wrong_usage({"plan", "--model", "absent", "--simulate", ","}, {"--simulate ,: an item"});
}

TEST(Lists, OfSlotsHoldEachNumberOnce) {
  const Outcome outcome =
      run_program({"trace", "replay", kTrace, "--slots", "64,128,64,25%,30%", "--policies", "lru", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::vector<int64_t> slots;
  const auto json = nlohmann::json::parse(outcome.out);
  for (const auto& line : json.at("results")) slots.push_back(line.at("slots"));
  EXPECT_EQ(slots, (std::vector<int64_t>{64, 128, 153}));
}

TEST(Lists, OfSlotsThatNoModelCanHaveAreWrongUsage) {
  for (const char* slots : {"0", "0%", "101%", "1.5", "1e2"}) {
    expect_wrong_usage({"trace", "replay", "absent", "--slots", slots}, {"--slots", "is no number of slots"});
  }
  expect_refusal({"trace", "replay", kTrace, "--slots", "5"}, {"5 slots are too few"});
  expect_refusal({"trace", "replay", kTrace, "--slots", "99999999999999999999"},
                 {"more than all 512 experts"});
}

TEST(Variables, ThatAnOptionSetsAreSaidToHaveNoEffect) {
  const auto render = [](const std::string& definition) {
    return Arguments{"render", "--model", demo_model(), "--messages", "-", "--set", definition};
  };
  expect_wrong_usage(render("messages=[]"), {"--set messages: has no effect, --messages says it"}, "[]");
  expect_wrong_usage(render("tools=[]"), {"--set tools", "--tools"}, "[]");
  expect_wrong_usage(render("add_generation_prompt=false"),
                     {"--set add_generation_prompt", "--no-generation-prompt"}, "[]");
}

}  // namespace
}  // namespace sluice::testing
