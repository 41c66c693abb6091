// The host backend's inline form: order, counters, buffers.
#include "device/device.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>

#include "base/error.h"

namespace sluice {
namespace {

TEST(HostDevice, GivesAlignedBuffersAndCountsThem) {
  const auto device = make_host_device(1);
  const Buffer buffer = device->allocate_array<float>(1000, "test");
  EXPECT_EQ(buffer.bytes(), 4000u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
  EXPECT_EQ(device->allocated_bytes(), 4000u);
}

TEST(HostDevice, AnEmptyBufferHasNoData) {
  const auto device = make_host_device(1);
  const Buffer buffer = device->allocate(0, "nothing");
  EXPECT_EQ(buffer.data(), nullptr);
}

TEST(HostDevice, RefusesWhatCannotBeMappedAndNamesThePurpose) {
  const auto device = make_host_device(1);
  try {
    device->allocate(size_t{1} << 62, "KV cache");
    FAIL() << "4 exabytes were given";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
    EXPECT_NE(std::string(error.what()).find("KV cache"), std::string::npos) << error.what();
  }
}

TEST(HostDevice, AMovedBufferIsFreedOnce) {
  const auto device = make_host_device(1);
  Buffer first = device->allocate(4096, "first");
  void* data = first.data();
  Buffer second = std::move(first);
  EXPECT_EQ(first.data(), nullptr);
  EXPECT_EQ(second.data(), data);
  second = device->allocate(4096, "third");
  EXPECT_NE(second.data(), nullptr);
}

TEST(HostStream, RunsOperationsInOrderAndAddsUpTheirDeclarations) {
  const auto device = make_host_device(2);
  const auto stream = device->make_stream();
  std::vector<int> data(8, 1), target(8);
  stream->launch({.name = "double",
                  .reads = {range_of(data.data(), 8)},
                  .writes = {range_of(data.data(), 8)},
                  .flops = 8},
                 [&](const HostContext&) {
                   for (int& value : data) value *= 2;
                 });
  stream->copy("copy", target.data(), data.data(), 8 * sizeof(int));
  stream->copy("nothing", target.data(), data.data(), 0);
  device->wait(*stream, "test");
  EXPECT_EQ(device->host_waits().at("test"), 1);
  EXPECT_EQ(std::accumulate(target.begin(), target.end(), 0), 16);
  EXPECT_EQ(stream->totals().launches, 1u);
  EXPECT_EQ(stream->totals().copies, 1u);
  EXPECT_EQ(stream->totals().copied_bytes, 32u);
  EXPECT_EQ(stream->totals().read_bytes, 32u);
  EXPECT_EQ(stream->totals().written_bytes, 32u);
  EXPECT_EQ(stream->totals().flops, 8u);
}

}  // namespace
}  // namespace sluice
