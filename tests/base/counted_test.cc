// Numbers with their nouns, and medians.
#include "base/counted.h"

#include <gtest/gtest.h>

#include "base/median.h"

namespace sluice {
namespace {

TEST(Counted, OneThingIsNotMany) {
  EXPECT_EQ(counted(1, "chunk"), "1 chunk");
  EXPECT_EQ(counted(0, "chunk"), "0 chunks");
  EXPECT_EQ(counted(uint64_t{12}, "token"), "12 tokens");
  EXPECT_EQ(counted(1, "pass", "passes"), "1 pass");
  EXPECT_EQ(counted(2, "pass", "passes"), "2 passes");
}

TEST(Median, IsTheUpperMiddleInWhateverOrder) {
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 3);
}

}  // namespace
}  // namespace sluice
