// A model with one expert a token took one slot as enough, but the smallest ring of a prompt has two.
#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "experts/settings.h"

namespace sluice::testing {
namespace {

TEST(OneExpertAToken, NeedsTheTwoSlotsOfTheSmallestRing) {
  const ExpertShape shape{.layers = 3, .experts = 8, .top_k = 1};
  expect_error(ErrorCode::kInvalidArgument, {"at least 2 are needed"}, [&] { parse_slots("1", shape); });
  const int64_t slots = parse_slots("2", shape);
  EXPECT_LE(ring_slots(shape, slots, 0), slots);
}

}  // namespace
}  // namespace sluice::testing
