// A link that is as slow as it is told to be.
#include "device/link_pace.h"

#include <gtest/gtest.h>

#include <vector>

#include "device/device.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

TEST(LinkPace, KnowsPinnedMemoryByItsBytes) {
  std::vector<std::byte> memory(100);
  LinkPace pace(1000);
  EXPECT_FALSE(pace.crosses(memory.data()));
  pace.add_pinned(memory.data() + 10, 20);
  pace.add_pinned(memory.data() + 50, 1);
  EXPECT_FALSE(pace.crosses(memory.data() + 9));
  EXPECT_TRUE(pace.crosses(memory.data() + 10));
  EXPECT_TRUE(pace.crosses(memory.data() + 29));
  EXPECT_FALSE(pace.crosses(memory.data() + 30));
  EXPECT_TRUE(pace.crosses(memory.data() + 50));
  pace.remove_pinned(memory.data() + 10);
  EXPECT_FALSE(pace.crosses(memory.data() + 10));
}

TEST(LinkPace, MakesACopyFromPinnedMemoryTakeAtLeastItsTime) {
  const auto device = make_host_device(1, 1000);  // bytes a millisecond
  const auto stream = device->make_stream();
  const Buffer pinned = device->allocate(5000, "rows", MemoryKind::kPinned);
  const Buffer slots = device->allocate(5000, "slots");
  const auto start = std::chrono::steady_clock::now();
  stream->copy("rows", slots.data(), pinned.data(), 5000);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 5ms);
}

TEST(LinkPace, ForgetsPinnedMemoryThatIsFreed) {
  const auto device = make_host_device(1, 1e-3);  // a thousand seconds a kilobyte
  const auto stream = device->make_stream();
  { const Buffer pinned = device->allocate(4096, "rows", MemoryKind::kPinned); }
  const Buffer a = device->allocate(4096, "slots"), b = device->allocate(4096, "slots");
  stream->copy("slots", a.data(), b.data(), 4096);
}

}  // namespace
}  // namespace sluice
