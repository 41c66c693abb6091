// ensure and its capped form: hits, victims, plans, counts.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "base/error.h"
#include "experts/slot_map_fixture.h"

namespace sluice {
namespace {

TEST(SlotMap, GivesRepeatedIdsOneSlotAndOneCopy) {
  TestMap map(2, 8, 6);
  EXPECT_EQ(map.ensure(1, {5, 2, 5, -1, 2}), (Ids{1, 0, 1, -1, 0}));
  EXPECT_EQ(map.planned(), (Entries{{0, 2}, {1, 5}}));
  EXPECT_EQ(map.slot_of(1, 5), 1);
  EXPECT_EQ(map.slot_of(0, 5), -1);
  EXPECT_EQ(map.owner(0), std::pair(1, 2));
}

TEST(SlotMap, PlansNothingWhereAllAreResident) {
  TestMap map(2, 8, 6);
  const Ids first = map.ensure(0, {7, 3, 1});
  EXPECT_EQ(map.ensure(0, {7, 3, 1}), first);
  EXPECT_EQ(map.planned(), Entries{});
}

TEST(SlotMap, EvictsLeastRecentlyUsedSlotNotOfThisCall) {
  TestMap map(2, 8, 4);
  map.ensure(0, {0, 1});
  map.ensure(0, {2, 3});
  // Expert 0's slot is the oldest but hit by this call; 1 is the oldest of the rest.
  EXPECT_EQ(map.ensure(0, {0, 5}), (Ids{0, 1}));
  EXPECT_EQ(map.slot_of(0, 1), -1);
  EXPECT_EQ(map.fault(), "");
}

TEST(SlotMap, TakesEmptySlotsThenPredictedOnesThenTheOldestTiesToTheLowest) {
  TestMap map(1, 16, 6);
  map.ensure(0, {0, 1, 2});
  map.predict(0, {8, 9});
  EXPECT_EQ(map.planned(), (Entries{{3, 8}, {4, 9}}));
  map.ensure(0, {3});
  EXPECT_EQ(map.planned(), (Entries{{5, 3}}));
  map.ensure(0, {4, 5, 6});
  EXPECT_EQ(map.planned(), (Entries{{3, 4}, {4, 5}, {0, 6}}));
}

TEST(SlotMap, ServesAsManyDistinctIdsAsThereAreSlots) {
  TestMap map(2, 8, 8);
  map.ensure(1, {0, 1, 2});
  Ids all(8);
  std::iota(all.begin(), all.end(), 0);
  map.ensure(0, all);
  EXPECT_EQ(map.planned().size(), 8u);
  EXPECT_EQ(map.slot_of(1, 0), -1);
  EXPECT_EQ(map.fault(), "");
}

TEST(SlotMap, RefusesMoreIdsThanSlotsAndChangesNothing) {
  TestMap map(2, 8, 3);
  map.ensure(0, {1, 2});
  const auto before = map.bytes();
  Ids ids{1, 2, 3, 4, 5};
  const SlotStatus status = map.try_ensure(0, ids);
  EXPECT_EQ(status, (SlotStatus{SlotError::kNoEvictableSlot, 0, 2}));
  EXPECT_EQ(map.bytes(), before);
  EXPECT_EQ(ids, (Ids{1, 2, 3, 4, 5}));
  EXPECT_EQ(map.planned(), Entries{});
  EXPECT_THROW(throw_if_failed(status), Error);
}

TEST(SlotMap, RefusesWhatIsNoExpertAndNoLayer) {
  TestMap map(2, 8, 3);
  const auto before = map.bytes();
  Ids above{1, 8}, below{-2};
  EXPECT_EQ(map.try_ensure(0, above), (SlotStatus{SlotError::kBadId, 0, 8}));
  EXPECT_EQ(map.try_ensure(0, below), (SlotStatus{SlotError::kBadId, 0, -2}));
  EXPECT_EQ(map.try_ensure(2, above), (SlotStatus{SlotError::kBadLayer, -1, 2}));
  EXPECT_EQ(map.bytes(), before);
}

TEST(SlotMap, KeepsAHitThatIsOlderThanAllVictims) {
  TestMap map(1, 64, 40);
  map.ensure(0, {0});
  for (int32_t e = 1; e < 40; ++e) map.ensure(0, {e});
  Ids skewed{0};
  for (int32_t e = 40; e < 50; ++e) skewed.push_back(e);
  EXPECT_EQ(map.ensure(0, skewed)[0], 0);
  EXPECT_EQ(map.owner(0), std::pair(0, 0));
}

TEST(SlotMap, CountsDistinctExpertsAndRepeats) {
  TestMap map(2, 8, 6);
  map.ensure(1, {1, 2, 2, -1});
  map.predict(1, {5});
  map.ensure(1, {2, 2, 5, 3, 3, 3});
  const LayerCounters& counters = map.view().counters[1];
  EXPECT_EQ(counters.calls, 2u);
  EXPECT_EQ(counters.routed, 9u);
  EXPECT_EQ(counters.routed_hits, 3u);
  EXPECT_EQ(counters.distinct, 5u);
  EXPECT_EQ(counters.hits, 2u);
  EXPECT_EQ(counters.misses, 3u);
  EXPECT_EQ(counters.fetched, 3u);
  EXPECT_EQ(counters.predicted, 1u);
  EXPECT_EQ(counters.predicted_used, 1u);
  EXPECT_EQ(map.view().counters[0].calls, 0u);
}

TEST(SlotMap, ScoredKeepsTheLayerWhoseTurnIsNextWhereLruEvictsIt) {
  for (const SlotPolicy policy : {SlotPolicy::kLru, SlotPolicy::kScored}) {
    TestMap map({.layers = 3, .experts = 8, .max_slots = 6, .policy = policy, .beta = 4}, 6);
    for (int32_t layer = 0; layer < 3; ++layer) map.ensure(layer, {0, 1});
    // All are one step old. Layer 0 was used first, but is next; layer 2 has just had its turn.
    map.ensure(2, {5});
    const bool lru = policy == SlotPolicy::kLru;
    EXPECT_EQ(map.slot_of(0, 0), lru ? -1 : 0);
    EXPECT_EQ(map.slot_of(2, 0), lru ? 4 : -1);
  }
}

TEST(FetchRule, StaysWithinOneOfTheFraction) {
  for (const double f : {0.1, 0.415, 0.454, 0.7, 1.0}) {
    for (int32_t misses = 0; misses <= 64; ++misses) {
      const int32_t fetched = FetchRule::fraction(f).fetches(misses);
      EXPECT_LE(std::abs(fetched - f * misses), 1.0 + 1e-3) << f << " of " << misses;
      EXPECT_LE(fetched, misses);
    }
  }
  EXPECT_EQ(FetchRule::fraction(0.415).fetches(3), 1);
  EXPECT_EQ(FetchRule::fraction(0.415).fetches(4), 2);
  EXPECT_EQ(FetchRule::fraction(0.5).fetches(1), 0);  // a tie goes to fewer
  EXPECT_EQ(FetchRule::at_most(9).fetches(4), 4);
}

class CappedEnsure : public testing::Test {
 protected:
  Ids call(Ids ids, const FetchRule& rule) {
    cpu_.assign(ids.size(), -9);
    const auto n = static_cast<int64_t>(ids.size());
    EXPECT_TRUE(slot_map::ensure_capped(map_.view(), 0, ids.data(), n, rule, cpu_.data(), map_.plan()).ok());
    return ids;
  }
  TestMap map_{1, 16, 16};
  Ids cpu_;
};

TEST_F(CappedEnsure, FetchesOneOfEightAndLeavesTheRestToTheCpu) {
  EXPECT_EQ(call({7, 6, 5, 4, 3, 2, 1, 0}, FetchRule::at_most(1)), (Ids{-1, -1, -1, -1, -1, -1, -1, 0}));
  EXPECT_EQ(cpu_, (Ids{7, 6, 5, 4, 3, 2, 1, -1}));
  EXPECT_EQ(map_.planned(), (Entries{{0, 0}}));
}

TEST_F(CappedEnsure, NeverFetchesWithCapZero) {
  EXPECT_EQ(call({4, -1, 4}, FetchRule::at_most(0)), (Ids{-1, -1, -1}));
  EXPECT_EQ(cpu_, (Ids{4, -1, 4}));
  EXPECT_EQ(map_.planned(), Entries{});
}

TEST_F(CappedEnsure, FetchesARecurringMissBeforeNewOnes) {
  call({9}, FetchRule::at_most(0));
  EXPECT_EQ(call({1, 9, 2}, FetchRule::at_most(1)), (Ids{-1, 0, -1}));
  EXPECT_EQ(map_.planned(), (Entries{{0, 9}}));
}

TEST_F(CappedEnsure, EqualsEnsureWhereTheCapReachesAllMisses) {
  TestMap plain(1, 16, 16);
  const uint64_t seed = 20261129;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int step = 0; step < 64; ++step) {
    Ids ids(8);
    for (int32_t& id : ids) id = static_cast<int32_t>(random() % 16);
    EXPECT_EQ(call(ids, FetchRule::at_most(8)), plain.ensure(0, ids));
    EXPECT_EQ(map_.bytes(), plain.bytes());
  }
}

}  // namespace
}  // namespace sluice
