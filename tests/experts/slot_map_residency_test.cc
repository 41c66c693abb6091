// Sizes, snapshots, warm start, integrity, and the operations of a stream.
#include <gtest/gtest.h>

#include "base/error.h"
#include "experts/slot_map_fixture.h"
#include "experts/slot_ops.h"

namespace sluice {
namespace {

TEST(SlotMap, RefusesSizesOutsideItsLimits) {
  EXPECT_THROW(TestMap({.layers = 0, .experts = 8, .max_slots = 4}, 4), Error);
  EXPECT_THROW(TestMap({.layers = 2, .experts = kMaxExperts + 1, .max_slots = 4}, 4), Error);
  EXPECT_THROW(TestMap({.layers = 2, .experts = 8, .max_slots = 17}, 4), Error);
  EXPECT_THROW(TestMap({.layers = 2, .experts = 8, .max_slots = 8}, 9), Error);
}

TEST(SlotMap, ResizeRefusesWithTheOldMapIntact) {
  TestMap map({.layers = 2, .experts = 8, .max_slots = 12}, 8);
  map.ensure(0, {1, 2, 3});
  const auto before = map.bytes();
  EXPECT_EQ(slot_map::resize(map.view(), 5, 6), (SlotStatus{SlotError::kBadSlotCount, -1, 5}));
  EXPECT_EQ(slot_map::resize(map.view(), 13, 6).code, SlotError::kBadSlotCount);
  EXPECT_EQ(map.bytes(), before);
  ASSERT_TRUE(slot_map::begin_region(map.view(), 2, nullptr, 0).ok());
  EXPECT_EQ(slot_map::resize(map.view(), 8, 6), (SlotStatus{SlotError::kRegionRunning, -1, 2}));
}

TEST(SlotMap, ResizeUnmapsTheTailAndAddsEmptySlots) {
  TestMap map({.layers = 2, .experts = 8, .max_slots = 12}, 6);
  map.ensure(0, {0, 1, 2, 3, 4, 5});
  ASSERT_TRUE(slot_map::resize(map.view(), 4, 4).ok());
  EXPECT_EQ(map.slot_of(0, 3), 3);
  EXPECT_EQ(map.slot_of(0, 4), -1);
  ASSERT_TRUE(slot_map::resize(map.view(), 12, 4).ok());
  EXPECT_EQ(map.ensure(1, {7}), (Ids{4}));
  EXPECT_EQ(map.fault(), "");
}

TEST(SlotMap, ACopyOfTheBytesIsASnapshot) {
  TestMap map(2, 8, 6);
  map.ensure(0, {1, 2});
  std::vector<std::byte> copy = map.bytes();
  map.ensure(0, {3, 4});
  const SlotMapView snapshot = view_of(copy.data(), map.view().shape);
  EXPECT_EQ(slot_map::check_integrity(snapshot), "");
  EXPECT_EQ(snapshot.slot_of[2], 1);
  EXPECT_EQ(snapshot.slot_of[3], -1);
  // And it goes on from there.
  PlanBuffer buffer(8);
  Ids ids{5};
  EXPECT_TRUE(slot_map::ensure(snapshot, 1, ids.data(), 1, buffer.plan()).ok());
  EXPECT_EQ(ids, Ids{2});
  EXPECT_EQ(map.slot_of(1, 5), -1);
}

TEST(SlotMap, SavedResidencyFillsANewMapInTheSameOrderOfEviction) {
  TestMap map(2, 8, 4);
  map.ensure(0, {5});
  map.ensure(1, {2, 6});
  map.predict(0, {1});
  map.ensure(0, {5});
  const auto saved = slot_map::save_residency(map.view());
  EXPECT_EQ(saved, (std::vector<Resident>{{0, 1}, {1, 2}, {1, 6}, {0, 5}}));
  TestMap next(2, 8, 4);
  for (const Resident& resident : saved) {
    const int32_t id = next.view().flat(resident.layer, resident.expert);
    ASSERT_TRUE(slot_map::fill(next.view(), &id, 1, next.plan()).ok());
    EXPECT_EQ(next.planned().size(), 1u);
  }
  const int32_t extra = 7;
  ASSERT_TRUE(slot_map::fill(next.view(), &extra, 1, next.plan()).ok());
  EXPECT_EQ(next.planned(), Entries{});  // nothing is evicted for it
  EXPECT_EQ(slot_map::save_residency(next.view()), saved);
  next.ensure(1, {0, 3});
  EXPECT_EQ(next.slot_of(0, 1), -1);
  EXPECT_EQ(next.slot_of(1, 2), -1);
  EXPECT_EQ(next.slot_of(0, 5), 3);
}

TEST(SlotMap, IntegrityNamesEachKindOfDamage) {
  const auto damaged = [](const auto& damage) {
    TestMap map({.layers = 2, .experts = 8, .max_slots = 6, .policy = SlotPolicy::kScored}, 6);
    map.ensure(0, {1, 2, 3});
    map.ensure(1, {4});
    EXPECT_EQ(map.fault(), "");
    damage(map.view());
    return map.fault();
  };
  using View = const SlotMapView&;
  EXPECT_NE(damaged([](View map) { map.slot_of[1] = 2; }), "");
  EXPECT_NE(damaged([](View map) { map.slot_of[7] = 2; }), "");
  EXPECT_NE(damaged([](View map) { map.owner_of[1] = -1; }), "");
  EXPECT_NE(damaged([](View map) { map.owner_of[5] = 1; }), "");
  EXPECT_NE(damaged([](View map) { map.last_use[0] = kEmptySlot; }), "");
  EXPECT_NE(damaged([](View map) { map.last_use[0] = map.header->clock; }), "");
  EXPECT_NE(damaged([](View map) { map.listed[0] = 1; }), "");
  EXPECT_NE(damaged([](View map) { map.header->floor = 1; }), "");
  EXPECT_NE(damaged([](View map) { map.header->slots = 5; }), "");
  EXPECT_NE(damaged([](View map) { ++*map.index.evictable; }), "");
  EXPECT_NE(damaged([](View map) { map.index.order[1] = 2; }), "");
  EXPECT_NE(damaged([](View map) { map.index.layer_order[1] = -1; }), "");
}

TEST(SlotOps, EnsureOnAStreamDeclaresTheWholeMap) {
  TestMap map(2, 8, 6);
  const uint64_t read = map.stream().totals().read_bytes;
  Ids ids{4, 1};
  slot_ops::ensure(map.stream(), map.view(), 1, ids.data(), 2, map.plan());
  EXPECT_EQ(ids, (Ids{1, 0}));
  EXPECT_EQ(map.planned(), (Entries{{0, 1}, {1, 4}}));
  EXPECT_EQ(map.stream().totals().read_bytes - read, map.view().bytes + 8);
}

TEST(SlotOps, AFailureLeavesNothingToReadAndItsStatusStays) {
  TestMap map(2, 8, 2);
  Ids many{1, 2, 3}, cpu{7, 7, 7}, bad{9};
  slot_ops::ensure_capped(map.stream(), map.view(), 1, many.data(), 3, FetchRule::at_most(3), cpu.data(),
                          map.plan());
  slot_ops::ensure(map.stream(), map.view(), 0, bad.data(), 1, map.plan());
  EXPECT_EQ(many, (Ids{-1, -1, -1}));
  EXPECT_EQ(cpu, (Ids{-1, -1, -1}));
  EXPECT_EQ(bad, Ids{-1});
  EXPECT_EQ(map.planned(), Entries{});
  SlotStatus status;
  slot_ops::read_status(map.stream(), map.view(), &status);
  EXPECT_EQ(status, (SlotStatus{SlotError::kNoEvictableSlot, 1, 1}));
  slot_ops::clear_status(map.stream(), map.view());
  slot_ops::read_status(map.stream(), map.view(), &status);
  EXPECT_TRUE(status.ok());
}

TEST(SlotOps, APassRunsAsOperations) {
  TestMap map(2, 4, 7);
  Stream& stream = map.stream();
  slot_ops::begin_region(stream, map.view(), 4, nullptr, 0);
  slot_ops::materialise(stream, map.view(), 0, 0, map.plan());
  const Ids ids{2};
  slot_ops::adopt(stream, map.view(), 0, ids.data(), 1, nullptr, map.plan());
  EXPECT_EQ(map.planned(), (Entries{{4, 2}}));
  slot_ops::release_layer(stream, map.view(), 0);
  slot_ops::end_region(stream, map.view());
  const int32_t most = 1;
  const Ids wishes{0, 1};
  slot_ops::install_predictions(stream, map.view(), 1, wishes.data(), 2, &most, map.plan());
  EXPECT_EQ(map.planned(), (Entries{{0, 0}}));
  slot_ops::invalidate(stream, map.view(), 0, 1);
  const Ids absent{map.view().flat(1, 0), map.view().flat(1, 1)};
  slot_ops::fill(stream, map.view(), absent.data(), 2, map.plan());
  EXPECT_EQ(map.planned(), (Entries{{0, absent[0]}, {1, absent[1]}}));
  slot_ops::resize(stream, map.view(), 5, 5);
  EXPECT_TRUE(map.view().header->status.ok()) << describe(map.view().header->status);
  EXPECT_EQ(map.view().header->slots, 5);
  EXPECT_EQ(map.fault(), "");
}

}  // namespace
}  // namespace sluice
