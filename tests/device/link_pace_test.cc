// A link that is as slow as it is told to be.
#include "device/link_pace.h"

#include <gtest/gtest.h>

#include <vector>

#include "device/device.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

TEST(LinkPace, KnowsDeviceMemoryByItsBytes) {
  std::vector<std::byte> memory(100);
  LinkPace pace(1000);
  EXPECT_TRUE(pace.crosses(memory.data()));
  pace.add_device(memory.data() + 10, 20);
  pace.add_device(memory.data() + 50, 1);
  EXPECT_TRUE(pace.crosses(memory.data() + 9));
  EXPECT_FALSE(pace.crosses(memory.data() + 10));
  EXPECT_FALSE(pace.crosses(memory.data() + 29));
  EXPECT_TRUE(pace.crosses(memory.data() + 30));
  EXPECT_FALSE(pace.crosses(memory.data() + 50));
  pace.remove_device(memory.data() + 10);
  EXPECT_TRUE(pace.crosses(memory.data() + 10));
}

// Lower bounds hold on any machine, however busy.
void expect_copy_takes(const void* source, std::chrono::milliseconds least) {
  const auto device = make_host_device(1, 1000);  // bytes a millisecond
  const auto stream = device->make_stream();
  const Buffer slots = device->allocate(5000, "slots");
  const auto start = std::chrono::steady_clock::now();
  stream->copy("rows", slots.data(), source, 5000);
  EXPECT_GE(std::chrono::steady_clock::now() - start, least);
}

TEST(LinkPace, MakesACopyFromPinnedMemoryTakeAtLeastItsTime) {
  const auto device = make_host_device(1);
  const Buffer pinned = device->allocate(5000, "rows", MemoryKind::kPinned);
  expect_copy_takes(pinned.data(), 5ms);
}

TEST(LinkPace, MakesACopyFromMemoryThatTheDeviceDoesNotKnowTakeAtLeastItsTime) {
  const std::vector<std::byte> rows(5000);
  expect_copy_takes(rows.data(), 5ms);
}

TEST(LinkPace, LeavesCopiesInsideTheDeviceAlone) {
  const auto device = make_host_device(1, 1e-3);  // a thousand seconds a kilobyte
  const auto stream = device->make_stream();
  const Buffer slots = device->allocate(4096, "slots");
  const auto pool = device->reserve(1 << 20, "pool");
  device->resize(*pool, 8192);
  stream->copy("adopt", slots.data(), pool->data(), 4096);
  stream->copy("adopt", static_cast<std::byte*>(pool->data()) + 4096, slots.data(), 4096);
}

}  // namespace
}  // namespace sluice
