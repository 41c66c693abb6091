// The threaded device: order, events, failures. Run under ThreadSanitizer too.
#include "device/threaded/threaded_device.h"

#include <gtest/gtest.h>

#include <cstring>
#include <future>

#include "base/error.h"
#include "base/thread_pool.h"

namespace sluice {
namespace {

TEST(ThreadedDevice, KeepsAPipelineOfThreeStreamsInOrder) {
  const auto device = make_threaded_device();
  constexpr int kRounds = 200;
  constexpr int64_t kCount = 64;
  const Buffer host = device->allocate_array<int>(kRounds * kCount, "host rows");
  const Buffer slot = device->allocate_array<int>(kCount, "slot");
  const Buffer sums = device->allocate_array<int>(kRounds, "sums");
  for (int i = 0; i < kRounds * kCount; ++i) host.as<int>()[i] = i;
  const auto copy = device->make_stream("copy", Priority::kHighest), compute = device->make_stream();
  const auto filled = device->make_event("filled"), used = device->make_event("used");
  for (int round = 0; round < kRounds; ++round) {
    copy->wait(*used);
    int* data = slot.as<int>();
    copy->copy("row", data, host.as<int>() + round * kCount, kCount * sizeof(int));
    copy->record(*filled);
    compute->wait(*filled);
    int* sum = sums.as<int>() + round;
    compute->launch({.name = "sum", .reads = {range_of(data, kCount)}, .writes = {range_of(sum, 1)}},
                    [=](const HostContext& context) {
                      context.pool.parallel_for(kCount, 1, [=](int64_t begin, int64_t end) {
                        for (int64_t i = begin; i < end; ++i) *sum += data[i];
                      });
                    });
    compute->record(*used);
  }
  device->wait(*used, "end");
  for (int round = 0; round < kRounds; ++round) {
    const int first = round * kCount;
    EXPECT_EQ(sums.as<int>()[round], kCount * first + kCount * (kCount - 1) / 2) << round;
  }
  EXPECT_EQ(device->host_waits().at("end"), 1);
}

TEST(ThreadedDevice, RunsStreamsAtTheSameTime) {
  const auto device = make_threaded_device();
  const auto a = device->make_stream(), b = device->make_stream();
  // Each waits for the other: one thread alone would never come to an end.
  std::promise<void> from_a, from_b;
  a->launch({.name = "a"}, [&](const HostContext&) {
    from_a.set_value();
    from_b.get_future().wait();
  });
  b->launch({.name = "b"}, [&](const HostContext&) {
    from_a.get_future().wait();
    from_b.set_value();
  });
  device->wait(*a, "a");
  device->wait(*b, "b");
}

TEST(ThreadedDevice, SaysWhetherAnEventIsDone) {
  const auto device = make_threaded_device();
  const auto stream = device->make_stream();
  const auto event = device->make_event("event");
  EXPECT_TRUE(device->done(*event));
  std::promise<void> go;
  stream->launch({.name = "blocked"}, [&](const HostContext&) { go.get_future().wait(); });
  stream->record(*event);
  EXPECT_FALSE(device->done(*event));
  go.set_value();
  device->wait(*event, "event");
  EXPECT_TRUE(device->done(*event));
}

TEST(ThreadedDevice, AWaitBindsToTheLatestRecord) {
  const auto device = make_threaded_device();
  const auto a = device->make_stream(), b = device->make_stream();
  const auto event = device->make_event("event");
  std::promise<void> go;
  int value = 0, seen = 0;
  a->record(*event);
  a->launch({.name = "write"}, [&](const HostContext&) {
    go.get_future().wait();
    value = 1;
  });
  a->record(*event);
  b->wait(*event);
  b->launch({.name = "read"}, [&](const HostContext&) { seen = value; });
  go.set_value();
  device->wait(*b, "end");
  EXPECT_EQ(seen, 1);
}

TEST(ThreadedDevice, ThrowsAFailureOnceAtAHostWait) {
  const auto device = make_threaded_device();
  const auto stream = device->make_stream();
  char bytes[8] = {};
  device->faults().add(Fault::kCopy, "experts");
  stream->copy("experts", bytes, bytes + 4, 4);
  try {
    device->wait(*stream, "end");
    FAIL() << "the copy did not fail";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_STREQ(error.what(), "copy 'experts' failed");
  }
  device->wait(*stream, "end");
}

TEST(ThreadedDevice, AStreamThatGoesRunsWhatIsQueued) {
  const auto device = make_threaded_device();
  int count = 0;
  {
    const auto stream = device->make_stream();
    for (int i = 0; i < 100; ++i) stream->launch({.name = "add"}, [&](const HostContext&) { ++count; });
  }
  EXPECT_EQ(count, 100);
}

}  // namespace
}  // namespace sluice
