// Byte counts for people, and ids.
#include "base/units.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace sluice {
namespace {

TEST(FormatBytes, UsesDecimalUnitsWithTwoDigits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1000), "1.00 kB");
  EXPECT_EQ(format_bytes(1'770'000), "1.77 MB");
  EXPECT_EQ(format_bytes(16'000'000'000), "16.00 GB");
  EXPECT_EQ(format_bytes(UINT64_MAX), "18.45 EB");
}

TEST(FormatBytes, TakesTheNextUnitWhereRoundingReachesIt) {
  EXPECT_EQ(format_bytes(999'994), "999.99 kB");
  EXPECT_EQ(format_bytes(999'996), "1.00 MB");
  EXPECT_EQ(format_bytes(999'999'999), "1.00 GB");
}

TEST(Id, ComparesByValueAndDoesNotConvertToAnotherKindOfId) {
  EXPECT_EQ(LayerId(3), LayerId(3));
  EXPECT_LT(SlotId(2), SlotId(10));
  EXPECT_EQ(ExpertId().value, 0);
  EXPECT_FALSE((std::is_convertible_v<LayerId, ExpertId>));
  EXPECT_FALSE((std::is_constructible_v<ExpertId, LayerId>));
  EXPECT_FALSE((std::is_convertible_v<int, LayerId>));
}

TEST(ParseBytes, TakesNumbersWithAndWithoutUnits) {
  EXPECT_EQ(parse_bytes("4096"), 4096u);
  EXPECT_EQ(parse_bytes("800MB"), 800000000u);
  EXPECT_EQ(parse_bytes("1.5 GB"), 1500000000u);
  EXPECT_EQ(parse_bytes("2KiB"), 2048u);
  EXPECT_EQ(parse_bytes("1GiB"), uint64_t{1} << 30);
}

TEST(ParseBytes, RefusesOtherText) {
  for (const char* text : {"", "GB", "12x", "-1", "1 MB ", "1e30GB", "nan"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace sluice
