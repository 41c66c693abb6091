// Numbers of slots and rings: what is taken and what is refused, in which words.
#include "experts/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/expect_error.h"

namespace sluice {
namespace {

using testing::expect_error;

const ExpertShape kDemo{.layers = 8, .experts = 64, .top_k = 6, .decode_rows = 1};

void expect_refused(const std::string& text, const std::vector<std::string>& parts,
                    const ExpertShape& shape = kDemo) {
  std::vector<std::string> all = {"--expert-slots " + text + ":"};
  all.insert(all.end(), parts.begin(), parts.end());
  expect_error(ErrorCode::kInvalidArgument, all, [&] { parse_slots(text, shape); });
}

TEST(Settings, SlotsAreANumberAShareAllOrAuto) {
  EXPECT_EQ(parse_slots("auto", kDemo), 0);
  EXPECT_EQ(parse_slots("all", kDemo), 512);
  EXPECT_EQ(parse_slots("6", kDemo), 6);
  EXPECT_EQ(parse_slots("512", kDemo), 512);
  EXPECT_EQ(parse_slots("25%", kDemo), 128);
  EXPECT_EQ(parse_slots("100%", kDemo), 512);
  EXPECT_EQ(parse_slots("12.5%", kDemo), 64);
  EXPECT_EQ(parse_slots("1.2%", kDemo), 6);  // 6.1 is rounded down
}

TEST(Settings, WhatIsNoNumberIsRefused) {
  for (const char* text :
       {"", "%", "many", "12 ", " 12", "12x", "-5", "-5%", "inf", "nan", "0x10", "1e999", "1e2", "1e2%"}) {
    expect_refused(text, {"expected a number, a percentage such as 25%, all or auto"});
  }
  expect_refused("12.5", {"a number of slots is whole"});
}

TEST(Settings, TooManyAndTooFewSlotsAreRefusedWithTheLimit) {
  expect_refused("513", {"the model has only 512 experts"});
  expect_refused("99999999999999999999", {"the model has only 512 experts"});
  expect_refused("100.1%", {"more than 100%"});
  expect_refused("5", {"at least 6 are needed (experts a token x requests)"});
  expect_refused("0", {"experts need some slots"});
  expect_refused("1%", {"rounds to 5 slots; at least 6 are needed"});
  ExpertShape batch = kDemo;
  batch.decode_rows = 4;
  expect_refused("23", {"at least 24 are needed"}, batch);
  EXPECT_EQ(parse_slots("24", batch), 24);
}

TEST(Settings, TheLeastIsTheExpertsOfOneStepButTwoTilesAtLeast) {
  EXPECT_EQ(min_slots(kDemo), 6);
  EXPECT_EQ(min_slots({.layers = 8, .experts = 64, .top_k = 6, .decode_rows = 100}), 64);
  EXPECT_EQ(min_slots({.layers = 3, .experts = 8, .top_k = 1}), 2);
  EXPECT_EQ(parse_slots("all", {.layers = 0, .experts = 0, .top_k = 0}), 0);  // a dense model
}

TEST(Settings, ARingIsTwoLayersWhereHalfOfTheSlotsAllowIt) {
  EXPECT_EQ(ring_slots(kDemo, 512, 0), 128);
  EXPECT_EQ(ring_slots(kDemo, 256, 0), 128);
  EXPECT_EQ(ring_slots(kDemo, 255, 0), 126);  // even
  EXPECT_EQ(ring_slots(kDemo, 100, 0), 50);
  EXPECT_EQ(ring_slots(kDemo, 10, 0), 4);  // leaves the 6 of a decode step
  EXPECT_EQ(ring_slots(kDemo, 6, 0), 2);   // nothing to leave
  EXPECT_EQ(ring_slots(kDemo, 7, 0), 2);
}

TEST(Settings, EveryRingFitsItsSlots) {
  for (int64_t top_k = 1; top_k <= 4; ++top_k) {
    const ExpertShape shape{.layers = 3, .experts = 5, .top_k = top_k};
    for (int64_t slots = min_slots(shape); slots <= 15; ++slots) {
      const int64_t ring = ring_slots(shape, slots, 0);
      EXPECT_GE(ring, 2);
      EXPECT_LE(ring, std::min<int64_t>(slots, 10)) << slots << " slots, top " << top_k;
      EXPECT_EQ(ring % 2, 0);
    }
  }
}

TEST(Settings, AWishedRingIsTakenOrRefusedWithWhatFits) {
  EXPECT_EQ(ring_slots(kDemo, 512, 2), 2);
  EXPECT_EQ(ring_slots(kDemo, 512, 128), 128);
  EXPECT_EQ(ring_slots(kDemo, 20, 20), 20);
  const auto refused = [](int64_t slots, int64_t wish, const std::string& most) {
    expect_error(ErrorCode::kInvalidArgument,
                 {"--prefill-ring " + std::to_string(wish) + " does not fit",
                  "an even number from 2 to " + most, "within " + std::to_string(slots) + " slots"},
                 [&] { ring_slots(kDemo, slots, wish); });
  };
  refused(512, 7, "128");
  refused(512, 130, "128");
  refused(20, 22, "20");
  refused(21, 22, "20");  // 21 is odd and could not be asked for
  refused(512, -2, "128");
}

}  // namespace
}  // namespace sluice
