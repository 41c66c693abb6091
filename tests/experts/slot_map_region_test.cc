// Predictions, ranges of slots, passes.
#include <gtest/gtest.h>

#include <numeric>

#include "experts/slot_map_fixture.h"

namespace sluice {
namespace {

TEST(SlotMap, PredictionsNeverTakeSlotsOfTheRunningCallNorMoveTheClock) {
  TestMap map(2, 8, 4);
  map.ensure(1, {0});
  map.ensure(0, {1, 2, 3});
  const int64_t clock = map.view().header->clock;
  map.predict(1, {5, 6, 7});
  EXPECT_EQ(map.planned(), (Entries{{0, 5}}));
  EXPECT_EQ(map.view().header->clock, clock);
  EXPECT_EQ(map.view().last_use[0], kPredictedSlot);
}

TEST(SlotMap, PredictionsFollowThePreferenceUpToTheMostAllowed) {
  TestMap map(2, 8, 8);
  map.ensure(1, {4});
  map.predict(1, {6, 4, 6, -1, 2, 0}, 2);
  EXPECT_EQ(map.planned(), (Entries{{1, 6}, {2, 2}}));
}

TEST(SlotMap, PredictionsReplaceUnusedOnesButNotThoseNamedAgain) {
  TestMap map(2, 8, 4);
  map.ensure(0, {0, 1});
  map.predict(1, {2, 3});
  map.ensure(0, {0, 1});
  map.predict(1, {2, 5, 6});
  // 2 is named again and stays, 5 takes the slot of 3, and 6 finds none but its own call's.
  EXPECT_EQ(map.planned(), (Entries{{3, 5}}));
  EXPECT_EQ(map.slot_of(1, 2), 2);
  EXPECT_EQ(map.fault(), "");
}

TEST(SlotMap, AUsedPredictionBecomesAnOrdinaryResident) {
  TestMap map(2, 8, 4);
  map.predict(1, {2});
  map.ensure(1, {2});
  EXPECT_EQ(map.planned(), Entries{});
  EXPECT_EQ(map.view().last_use[map.slot_of(1, 2)], map.view().header->clock);
}

TEST(SlotMap, InvalidateRefusesARangeThatLeavesThePool) {
  TestMap map({.layers = 3, .experts = 256, .max_slots = 768}, 600);
  Ids all(256);
  std::iota(all.begin(), all.end(), 0);
  map.ensure(0, all);
  map.ensure(1, all);
  map.ensure(2, Ids(all.begin(), all.begin() + 88));
  const auto before = map.bytes();
  EXPECT_EQ(slot_map::invalidate(map.view(), 512, 256), (SlotStatus{SlotError::kBadRange, -1, 512}));
  EXPECT_EQ(slot_map::invalidate(map.view(), -1, 2).code, SlotError::kBadRange);
  EXPECT_EQ(slot_map::invalidate(map.view(), 600, 1).code, SlotError::kBadRange);
  EXPECT_EQ(slot_map::invalidate(map.view(), 3, -1).code, SlotError::kBadRange);
  EXPECT_EQ(map.bytes(), before);
  EXPECT_TRUE(slot_map::invalidate(map.view(), 344, 256).ok());
  EXPECT_EQ(map.slot_of(1, 87), 343);
  EXPECT_EQ(map.slot_of(1, 88), -1);
  EXPECT_EQ(map.fault(), "");
}

TEST(SlotMap, ARegionIsNeitherHitNorVictimAndEmptyInTheEnd) {
  TestMap map(2, 4, 8);
  map.ensure(0, {0, 1, 2, 3});
  ASSERT_TRUE(slot_map::begin_region(map.view(), 4, nullptr, 0).ok());
  EXPECT_EQ(map.slot_of(0, 0), -1);
  ASSERT_TRUE(slot_map::materialise(map.view(), 0, 0, map.plan()).ok());
  EXPECT_EQ(map.planned(), (Entries{{0, 0}, {1, 1}, {2, 2}, {3, 3}}));
  EXPECT_EQ(map.ensure(0, {2}), (Ids{4}));  // in the region, so a miss
  EXPECT_EQ(map.view().owner_of[2], -1);
  EXPECT_EQ(slot_map::begin_region(map.view(), 4, nullptr, 0).code, SlotError::kRegionRunning);
  ASSERT_TRUE(slot_map::end_region(map.view()).ok());
  for (int32_t slot = 0; slot < 4; ++slot) EXPECT_EQ(map.view().owner_of[slot], -1);
  EXPECT_EQ(map.ensure(0, {2}), (Ids{4}));  // kept its residency
  EXPECT_EQ(map.ensure(1, {3}), (Ids{0}));  // the region is the pool's again
  EXPECT_EQ(map.fault(), "");
}

TEST(SlotMap, ABatchOfSeveralRequestsInsideAnEpochTakesNothingOfThePass) {
  TestMap map({.layers = 3, .experts = 32, .max_slots = 96}, 40);
  map.ensure(1, {0, 1, 2, 3, 4, 5, 6, 7});  // slots 0 to 7
  map.ensure(2, {8, 9, 10, 11});            // slots 8 to 11
  const Ids layers{2};
  ASSERT_TRUE(slot_map::begin_region(map.view(), 8, layers.data(), 1).ok());
  const Ids routes = {3, 17, 3, 18, -1, 19, 17, 20, 21, 3, 22, 23, 24, -1, 25, 26};  // 4 requests, 4 a token
  for (int32_t layer = 0; layer < 3; ++layer) {
    const Ids slots = map.ensure(layer, routes);
    for (size_t i = 0; i < routes.size(); ++i) {
      for (size_t j = 0; j < routes.size(); ++j) EXPECT_EQ(slots[i] == slots[j], routes[i] == routes[j]);
      EXPECT_TRUE(routes[i] < 0 ? slots[i] == -1 : slots[i] >= 8) << "in the region: " << slots[i];
      EXPECT_TRUE(slots[i] < 8 || slots[i] >= 12) << "a slot that the pass counts on: " << slots[i];
    }
    EXPECT_EQ(map.fault(), "");
  }
  for (int32_t expert = 8; expert < 12; ++expert) EXPECT_EQ(map.slot_of(2, expert), expert);
}

TEST(SlotMap, AListedSlotIsNobodysVictimUntilItsLayerIsReleased) {
  TestMap map(2, 8, 6);
  map.ensure(0, {0, 1});
  map.ensure(1, {0, 1, 2, 3});
  const Ids layers{1};
  ASSERT_TRUE(slot_map::begin_region(map.view(), 0, layers.data(), 1).ok());
  EXPECT_EQ(map.ensure(0, {4, 5}), (Ids{0, 1}));
  Ids more{6, 7, 4};
  EXPECT_EQ(map.try_ensure(0, more), (SlotStatus{SlotError::kNoEvictableSlot, 0, 1}));
  EXPECT_EQ(slot_map::invalidate(map.view(), 2, 1), (SlotStatus{SlotError::kListedSlot, -1, 2}));
  EXPECT_EQ(map.ensure(1, {1}), (Ids{3}));  // a hit is fine
  ASSERT_TRUE(slot_map::release_layer(map.view(), 1).ok());
  EXPECT_EQ(map.ensure(0, {6, 7, 4}), (Ids{2, 4, 0}));
  EXPECT_EQ(map.fault(), "");
}

TEST(SlotMap, LeavesVictimsForDecodeInsideAPassWhoseResidentsFillThePool) {
  TestMap map(2, 8, 6);
  map.ensure(0, {0, 1});
  map.ensure(1, {0, 1, 2, 3});
  map.ensure(0, {0, 1});
  ASSERT_TRUE(slot_map::begin_region(map.view(), 2, nullptr, 0).ok());
  ASSERT_TRUE(slot_map::leave_evictable(map.view(), 2).ok());
  EXPECT_EQ(Ids(map.view().listed, map.view().listed + 6), (Ids{0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(map.ensure(0, {6, 7}), (Ids{2, 3}));
  ASSERT_TRUE(slot_map::leave_evictable(map.view(), 2).ok());
  EXPECT_EQ(map.view().listed[4], 1);  // there are two already
  ASSERT_TRUE(slot_map::leave_evictable(map.view(), 100).ok());
  EXPECT_EQ(map.view().listed[5], 0);
  EXPECT_EQ(map.fault(), "");
}

TEST(SlotMap, MaterialiseForgetsOldSlotsOfTheLayerAndOwnersOfTheRange) {
  TestMap map(2, 4, 8);
  map.ensure(0, {3, 1});
  map.ensure(1, {0, 2});
  ASSERT_TRUE(slot_map::materialise(map.view(), 1, 0, map.plan()).ok());
  for (int32_t e = 0; e < 4; ++e) EXPECT_EQ(map.slot_of(1, e), e);
  EXPECT_EQ(map.owner(3), std::pair(1, 3));
  map.ensure(0, {1, 3});  // a stale hit would serve another layer's bytes
  EXPECT_EQ(map.planned().size(), 2u);
  EXPECT_EQ(slot_map::materialise(map.view(), 1, 5, map.plan()).code, SlotError::kBadRange);
  EXPECT_EQ(map.fault(), "");
}

TEST(SlotMap, AdoptMovesExpertsOutOfTheRegion) {
  TestMap map(2, 4, 7);
  ASSERT_TRUE(slot_map::begin_region(map.view(), 4, nullptr, 0).ok());
  ASSERT_TRUE(slot_map::materialise(map.view(), 0, 0, map.plan()).ok());
  const Ids ids{3, 1, -1, 3};
  ASSERT_TRUE(slot_map::adopt(map.view(), 0, ids.data(), 4, nullptr, map.plan()).ok());
  EXPECT_EQ(map.planned(), (Entries{{4, 1}, {5, 3}}));
  EXPECT_EQ(map.slot_of(0, 3), 5);
  EXPECT_EQ(map.view().owner_of[3], -1);
  EXPECT_EQ(map.fault(), "");
}

TEST(SlotMap, AdoptTakesAsManyAsFindAVictimAndTheCallersWordForWhereTheyLie) {
  TestMap map(2, 4, 6);
  ASSERT_TRUE(slot_map::begin_region(map.view(), 4, nullptr, 0).ok());
  const Ids lies{2, -1, 0, 1}, ids{0, 1, 2, 3};
  ASSERT_TRUE(slot_map::adopt(map.view(), 1, ids.data(), 4, lies.data(), map.plan()).ok());
  EXPECT_EQ(map.planned(), (Entries{{4, 2}, {5, 0}}));
  const Ids outside{4, -1, 0, 1}, one{3, 0, 2};
  ASSERT_TRUE(slot_map::invalidate(map.view(), 4, 2).ok());
  EXPECT_EQ(slot_map::adopt(map.view(), 1, one.data(), 3, outside.data(), map.plan()),
            (SlotStatus{SlotError::kBadRange, 1, 4}));
}

}  // namespace
}  // namespace sluice
