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

}  // namespace
}  // namespace sluice
