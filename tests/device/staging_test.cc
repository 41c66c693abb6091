// Staging slots come back when their step has run, and never earlier.
#include "device/staging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "base/error.h"
#include "device/explored/explore.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

TEST(StagingRing, GivesEachSlotOnceUntilItsStepIsReleased) {
  const auto device = make_host_device(1);
  const auto stream = device->make_stream();
  StagingRing ring(*device, 3, 100, "tokens");
  EXPECT_EQ(ring.slot_bytes(), 128u);
  EXPECT_EQ(device->allocated_bytes(), 384u);
  std::set<std::byte*> slots;
  for (int i = 0; i < 3; ++i) slots.insert(ring.acquire(100));
  EXPECT_EQ(slots.size(), 3u);
  try {
    ring.acquire(1);
    FAIL() << "a slot was given twice";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
    EXPECT_STREQ(error.what(), "tokens: all 3 staging slots belong to steps that have not run");
  }
  ring.release_after(*stream);
  EXPECT_TRUE(slots.contains(ring.acquire(1)));
  EXPECT_EQ(ring.free_slots(), 2u);
}

TEST(StagingRing, RefusesMoreBytesThanASlotHas) {
  const auto device = make_host_device(1);
  StagingRing ring(*device, 1, 64, "tokens");
  EXPECT_THROW(ring.acquire(65), Error);
  EXPECT_NE(ring.acquire(64), nullptr);
}

TEST(StagingRing, RunsOutWhileTheDeviceIsBehind) {
  ExploredDevice device({.strategy = Strategy::kScript});  // runs nothing before a host wait, if it can
  const auto stream = device.make_stream();
  const Buffer target = device.allocate(64, "target");
  StagingRing ring(device, 2, 64, "tokens");
  for (int step = 0; step < 2; ++step) {
    stream->copy("tokens", target.data(), ring.acquire(64), 64);
    ring.release_after(*stream);
  }
  EXPECT_THROW(ring.acquire(64), Error);
  device.wait(*stream, "end");
  EXPECT_NE(ring.acquire(64), nullptr);
}

// A step uploads its number through the ring; the device adds them up.
Scenario uploads(bool drop_done) {
  return [=](ExploredDevice& device) {
    if (drop_done) device.drop(FenceKind::kDone, "host", "tokens read");
    const Buffer value = device.allocate_array<int>(1, "value"), sum = device.allocate_array<int>(1, "sum");
    int *from = value.as<int>(), *to = sum.as<int>();
    *to = 0;
    StagingRing ring(device, 2, sizeof(int), "tokens");
    const auto stream = device.make_stream();
    for (int step = 1; step <= 6; ++step) {
      std::byte* slot = nullptr;
      try {
        slot = ring.acquire(sizeof(int));
      } catch (const Error&) {
        device.wait(*stream, "staging");
        slot = ring.acquire(sizeof(int));
      }
      std::memcpy(slot, &step, sizeof step);
      stream->copy("tokens", from, slot, sizeof step);
      stream->launch(
          {.name = "add", .reads = {range_of(from, 1), range_of(to, 1)}, .writes = {range_of(to, 1)}},
          [=](const HostContext&) { *to += *from; });
      ring.release_after(*stream);
    }
    device.wait(*stream, "end");
    if (*to != 21) device.fail("the sum is " + std::to_string(*to));
  };
}

TEST(StagingRing, HasNoRaceUnderAnySchedule) {
  const Exploration result = explore_random(uploads(false), 200, 1);
  EXPECT_FALSE(result.violation.has_value()) << result.violation->report();
}

TEST(StagingRing, WouldBeOverwrittenWithoutItsEvents) {
  const Exploration result = explore_random(uploads(true), 1, 1);
  ASSERT_TRUE(result.violation.has_value());
  EXPECT_EQ(result.violation->kind, ViolationKind::kRace);
  EXPECT_THAT(result.violation->message, HasSubstr("'tokens' on the host"));
}

}  // namespace
}  // namespace sluice
