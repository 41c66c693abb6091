// Failures that tests order.
#include "device/faults.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "device/device.h"

namespace sluice {
namespace {

TEST(FaultPlan, RefusesTheNthAllocationOfAPurposeAndNoOther) {
  const auto device = make_host_device(1);
  device->faults().add(Fault::kAllocation, "slots", 2);
  EXPECT_NE(device->allocate(64, "expert slots").data(), nullptr);
  EXPECT_NE(device->allocate(64, "KV cache").data(), nullptr);
  try {
    device->allocate(64, "expert slots");
    FAIL() << "it was given";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
    EXPECT_STREQ(error.what(), "expert slots: 64 B were refused");
  }
  EXPECT_NE(device->allocate(64, "expert slots").data(), nullptr);
  EXPECT_EQ(device->allocated_bytes(), 192u);
}

TEST(FaultPlan, RefusesEveryPageLockUntilItIsCleared) {
  const auto device = make_host_device(1);
  const std::string rows(4096, 'x');
  EXPECT_TRUE(device->lock_pages({rows.data(), rows.size()}, "layer 3"));
  device->faults().add(Fault::kPageLock, "", FaultPlan::kEvery);
  for (int i = 0; i < 2; ++i) {
    const LockResult result = device->lock_pages({rows.data(), rows.size()}, "layer 3");
    EXPECT_FALSE(result);
    EXPECT_EQ(result.refusal, "layer 3: page-locking 4.10 kB was refused");
  }
  device->faults().clear();
  EXPECT_TRUE(device->lock_pages({rows.data(), rows.size()}, "layer 3"));
}

TEST(FaultPlan, FailsACopyOfAnInlineStreamAtItsCall) {
  const auto device = make_host_device(1);
  const auto stream = device->make_stream();
  char bytes[8] = "abc";
  device->faults().add(Fault::kCopy, "experts");
  EXPECT_THROW(stream->copy("experts", bytes + 4, bytes, 4), Error);
  EXPECT_EQ(bytes[4], 0);
  stream->copy("experts", bytes + 4, bytes, 4);
  EXPECT_EQ(bytes[4], 'a');
}

}  // namespace
}  // namespace sluice
