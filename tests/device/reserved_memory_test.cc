// Memory whose size changes at one address.
#include "device/reserved_memory.h"

#include <cstring>

#include "base/expect_error.h"
#include "device/explored/explore.h"

namespace sluice {
namespace {

using sluice::testing::expect_error;

TEST(ReservedMemory, KeepsItsAddressAndWhatStays) {
  const auto device = make_host_device(1);
  const auto memory = device->reserve(1 << 20, "slots");
  EXPECT_EQ(memory->bytes(), 0u);
  device->resize(*memory, 10000);
  auto* bytes = static_cast<unsigned char*>(memory->data());
  std::memset(bytes, 7, 10000);
  device->resize(*memory, 1 << 20);
  EXPECT_EQ(memory->data(), bytes);
  bytes[(1 << 20) - 1] = 1;
  device->resize(*memory, 5000);
  EXPECT_EQ(bytes[4999], 7);
  EXPECT_EQ(memory->bytes(), 5000u);
  EXPECT_EQ(device->allocated_bytes(), 5000u);
}

TEST(ReservedMemory, GivesPagesBackWhenItShrinks) {
  const auto device = make_host_device(1);
  const auto memory = device->reserve(1 << 20, "slots");
  device->resize(*memory, 1 << 20);
  auto* bytes = static_cast<unsigned char*>(memory->data());
  bytes[1 << 19] = 9;
  device->resize(*memory, 4096);
  device->resize(*memory, 1 << 20);
  EXPECT_EQ(bytes[1 << 19], 0) << "a new page";
}

TEST(ReservedMemory, ARefusedGrowthChangesNothing) {
  const auto device = make_host_device(1);
  const auto memory = device->reserve(1 << 20, "expert slots");
  device->resize(*memory, 4096);
  device->faults().add(Fault::kAllocation, "expert slots");
  expect_error(ErrorCode::kOutOfMemory, {"expert slots", "8.19 kB"}, [&] { device->resize(*memory, 12288); });
  EXPECT_EQ(memory->bytes(), 4096u);
  device->resize(*memory, 12288);
  EXPECT_EQ(memory->bytes(), 12288u);
}

// One operation writes the whole range, then half of it is given back.
Scenario shrink_after(bool wait) {
  return [wait](ExploredDevice& device) {
    const auto compute = device.make_stream();
    const auto memory = device.reserve(4096, "slots");
    device.resize(*memory, 4096);
    auto* bytes = static_cast<std::byte*>(memory->data());
    compute->launch({.name = "write", .writes = {{bytes, 4096}}},
                    [=](const HostContext&) { std::memset(bytes, 1, 4096); });
    if (wait) device.wait(*compute, "shrink");
    device.resize(*memory, 2048);
    device.wait(*compute, "end");
  };
}

TEST(ReservedMemory, ExplorationFindsWhoStillNeedsBytesThatGo) {
  EXPECT_FALSE(explore_random(shrink_after(true), 20, 1).violation.has_value());
  const Exploration result = explore_random(shrink_after(false), 20, 1);
  ASSERT_TRUE(result.violation.has_value());
  EXPECT_THAT(result.violation->message, ::testing::HasSubstr("'write' on stream 'compute'"));
  EXPECT_EQ(result.schedules, 1);
}

}  // namespace
}  // namespace sluice
