// Gathers by plan, and the routes of prompts that leave the pool alone.
#include "experts/transient.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "experts/gather.h"
#include "experts/slot_map_fixture.h"
#include "random_values.h"

namespace sluice {
namespace {

TEST(Gather, CopiesTheRowsOfThePlanAndNoOthers) {
  RandomValues random(71);
  SCOPED_TRACE(random.trace());
  const auto device = make_host_device(2);
  const auto stream = device->make_stream();
  for (const size_t row : {1u, 16u, 100u, 4096u}) {
    std::vector<std::byte> source(20 * row), target(9 * row, std::byte{0xee});
    for (std::byte& b : source) b = static_cast<std::byte>(random.integer(0, 255));
    std::vector<std::byte> expected = target;
    PlanBuffer buffer(4);
    buffer.slots = {8, 0, 3, 5};
    buffer.rows = {19, 7, 7, 0};
    buffer.count = 3;  // the fourth entry is old
    for (size_t i = 0; i < 3; ++i) {
      std::copy_n(source.begin() + static_cast<int64_t>(static_cast<size_t>(buffer.rows[i]) * row), row,
                  expected.begin() + static_cast<int64_t>(static_cast<size_t>(buffer.slots[i]) * row));
    }
    gather_rows(*stream, "gather", buffer.plan(), source.data(), target.data(), row);
    EXPECT_EQ(target, expected) << row;
    buffer.count = 0;
    gather_rows(*stream, "gather", buffer.plan(), nullptr, nullptr, row);
  }
}

TEST(Gather, MovesRowsInsideOnePool) {
  const auto device = make_host_device(1);
  const auto stream = device->make_stream();
  std::vector<std::byte> pool(6);
  for (size_t i = 0; i < 6; ++i) pool[i] = static_cast<std::byte>(i);
  PlanBuffer buffer(2);
  buffer.slots = {4, 5};
  buffer.rows = {1, 0};
  buffer.count = 2;
  gather_rows(*stream, "adopt", buffer.plan(), pool.data(), pool.data(), 1);
  EXPECT_EQ(pool, (std::vector{std::byte{0}, std::byte{1}, std::byte{2}, std::byte{3}, std::byte{1},
                               std::byte{0}}));
}

/// A map of 2 layers of 8 experts with a region of 4 slots, of which a layer may use 2.
class Transient : public ::testing::Test {
 protected:
  Transient() : map_(2, 8, 12) {}
  Ids route(int32_t layer, const Ids& ids, int32_t first_slot = 0, int32_t ring = 2) {
    Ids row_of(8, -7);
    route_transient(map_.stream(), map_.view(), layer, ids.data(), static_cast<int64_t>(ids.size()),
                    first_slot, ring, row_of.data(), map_.plan(), &counters_);
    return row_of;
  }

  TestMap map_;
  TransientCounters counters_;
};

TEST_F(Transient, ResidentsStayWhereTheyAreAndMissesTakeTheRing) {
  map_.ensure(0, {0, 1, 2, 3, 4, 5});
  ASSERT_TRUE(slot_map::begin_region(map_.view(), 4, nullptr, 0).ok());
  const auto before = map_.bytes();
  EXPECT_EQ(route(0, {5, 7, 5, 4, 6}, 2), (Ids{-1, -1, -1, -1, 4, 5, 2, 3}));
  EXPECT_EQ(map_.planned(), (Entries{{2, 6}, {3, 7}}));
  EXPECT_EQ(map_.bytes(), before) << "neither clock nor last_use nor any mapping moves";
  EXPECT_EQ(counters_.calls, 1u);
  EXPECT_EQ(counters_.routed, 5u);
  EXPECT_EQ(counters_.distinct, 4u);
  EXPECT_EQ(counters_.misses, 2u);
  EXPECT_EQ(counters_.overflows, 0u);
}

TEST_F(Transient, AnExpertBelowTheFloorIsNoHit) {
  map_.ensure(1, {0, 1});
  ASSERT_TRUE(slot_map::begin_region(map_.view(), 4, nullptr, 0).ok());
  map_.ensure(1, {2});  // slot 4
  // A slot of the region that still names its expert, as a materialised layer does.
  map_.view().slot_of[map_.view().flat(1, 3)] = 3;
  map_.view().owner_of[3] = map_.view().flat(1, 3);
  EXPECT_EQ(route(1, {2, 3}), (Ids{-1, -1, 4, 0, -1, -1, -1, -1}));
  EXPECT_EQ(map_.planned(), (Entries{{0, 3}}));
}

TEST_F(Transient, PaddingIsNeitherLookedUpNorCounted) {
  EXPECT_EQ(route(0, {-1, 3, -1, -1}), (Ids{-1, -1, -1, 0, -1, -1, -1, -1}));
  EXPECT_EQ(counters_.routed, 1u);
  EXPECT_EQ(counters_.distinct, 1u);
  EXPECT_EQ(route(0, {-1, -1}), Ids(8, -1));
  EXPECT_EQ(map_.planned(), Entries{});
  EXPECT_EQ(counters_.calls, 2u);
  EXPECT_EQ(counters_.routed, 1u);
}

TEST_F(Transient, WhatFindsNoRingSlotIsCountedAndGetsNone) {
  EXPECT_EQ(route(0, {1, 2, 3, 4}), (Ids{-1, 0, 1, -1, -1, -1, -1, -1}));
  EXPECT_EQ(map_.planned(), (Entries{{0, 1}, {1, 2}}));
  EXPECT_EQ(counters_.misses, 4u);
  EXPECT_EQ(counters_.overflows, 2u);
}

TEST_F(Transient, APlanThatIsTooSmallOverflowsAsWell) {
  PlanBuffer small(1);
  const Ids ids{5, 6};
  Ids row_of(8);
  route_transient(map_.stream(), map_.view(), 0, ids.data(), 2, 0, 8, row_of.data(), small.plan(),
                  &counters_);
  EXPECT_EQ(small.entries(), (Entries{{0, 5}}));
  EXPECT_EQ(row_of[6], -1);
  EXPECT_EQ(counters_.overflows, 1u);
}

}  // namespace
}  // namespace sluice
