// A share of the experts was rounded down by the engine and to the nearest by `trace replay`, and 41 % of 600
// lost a slot to floating point.
#include <gtest/gtest.h>

#include <string>

#include "experts/settings.h"
#include "experts/slot_count.h"

namespace sluice {
namespace {

int64_t slots(const std::string& text, int64_t experts) {
  const auto count = read_slot_count(text);
  EXPECT_TRUE(count.has_value()) << text;
  return count ? count->of(experts) : -1;
}

TEST(SharesOfSlots, AreExactAndRoundedDown) {
  EXPECT_EQ(slots("30%", 512), 153);  // 153.6
  EXPECT_EQ(slots("41%", 600), 246);
  EXPECT_EQ(parse_slots("41%", {.layers = 6, .experts = 100, .top_k = 2}), 246);
  EXPECT_EQ(slots("12.5%", 512), 64);
  EXPECT_EQ(slots("33.33333333333333333%", 3), 0);
  EXPECT_EQ(slots("99.99999999999999999%", int64_t{1} << 40), (int64_t{1} << 40) - 1);
  for (int64_t percent = 0; percent <= 100; ++percent) {
    for (const int64_t experts : {1, 7, 100, 600, 10240}) {
      EXPECT_EQ(slots(std::to_string(percent) + "%", experts), percent * experts / 100);
      EXPECT_EQ(slots(std::to_string(percent) + ".0%", experts), percent * experts / 100);
    }
  }
}

TEST(SharesOfSlots, AreDecimalNumbersAndNothingElse) {
  for (const char* text : {"", "%", ".", ".5%", "5.%", "1e2", "1e2%", "+5", "-5", "0x10", " 5", "5 ", "5%%",
                           "inf", "nan", "1,5%", "all", "0.000000000000000001%"}) {
    EXPECT_FALSE(read_slot_count(text).has_value()) << text;
  }
}

TEST(SharesOfSlots, BeyondAnyModelAreMoreThanAnyModelHas) {
  for (const std::string text : {"9223372036854775808", "99999999999999999999", "18446744073709551616"}) {
    EXPECT_EQ(slots(text, 512), INT64_MAX) << text;
    EXPECT_EQ(read_slot_count(text)->problem(), "");
  }
  EXPECT_EQ(read_slot_count("99999999999999999999%")->problem(), "more than 100%");
}

TEST(SharesOfSlots, HaveProblemsThatNoModelSolves) {
  for (const auto& [text, problem] : {std::pair{"100%", ""},
                                      {"100.00000000000000001%", "more than 100%"},
                                      {"12.5", "a number of slots is whole"},
                                      {"0", "experts need some slots"},
                                      {"0.00%", "experts need some slots"}}) {
    EXPECT_EQ(read_slot_count(text)->problem(), problem) << text;
  }
}

}  // namespace
}  // namespace sluice
