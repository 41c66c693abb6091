// A self-test of batched copies as an engine does it while serving: it fills its destination with zeroes on
// the busy stream and copies on a fresh one. Published engines forgot the fence between the two; with a
// backlog the zeroes landed last, and the copy was held to be broken.
#include <gtest/gtest.h>

#include <cstring>
#include <future>

#include "device/explored/explore.h"
#include "device/threaded/threaded_device.h"

namespace sluice {
namespace {

constexpr int kEntries = 4;
constexpr size_t kEntryBytes = 16;
constexpr int kRuns = 50;

struct SelfTest {
  SelfTest(Device& d, Stream& busy_stream)
      : device(d),
        busy(busy_stream),
        source(d.allocate(kEntries * kEntryBytes, "self-test source", MemoryKind::kPinned)),
        target(d.allocate(kEntries * kEntryBytes, "self-test target")),
        fresh(d.make_stream("fresh", Priority::kHigh)),
        filled(d.make_event("filled")) {
    device.host_writes({source.data(), source.bytes()}, "self-test source");
    for (size_t i = 0; i < source.bytes(); ++i) source.as<uint8_t>()[i] = static_cast<uint8_t>(i + 1);
  }

  void queue(bool ordered) {
    void* bytes = target.data();
    busy.launch({.name = "zeroes", .writes = {{bytes, target.bytes()}}},
                [=, size = target.bytes()](const HostContext&) { std::memset(bytes, 0, size); });
    busy.record(*filled);
    if (ordered) fresh->wait(*filled);
    std::vector<CopyEntry> entries;
    for (int i = kEntries - 1; i >= 0; --i) {
      const size_t at = static_cast<size_t>(i) * kEntryBytes;
      entries.push_back({target.as<std::byte>() + at, source.as<std::byte>() + at, kEntryBytes});
    }
    fresh->copy_batch("self-test", entries);
  }
  bool passes() {
    device.host_reads({target.data(), target.bytes()}, "self-test result");
    return std::memcmp(target.data(), source.data(), target.bytes()) == 0;
  }

  Device& device;
  Stream& busy;
  Buffer source, target;
  std::unique_ptr<Stream> fresh;
  std::unique_ptr<Event> filled;
};

int passes_beside_a_backlog(bool ordered) {
  const auto device = make_threaded_device();
  const auto busy = device->make_stream();
  int passed = 0;
  for (int run = 0; run < kRuns; ++run) {
    SelfTest test(*device, *busy);
    std::promise<void> end_of_backlog;
    busy->launch({.name = "backlog"},
                 [wait = end_of_backlog.get_future().share()](const HostContext&) { wait.wait(); });
    test.queue(ordered);
    if (!ordered) device->wait(*test.fresh, "copy");  // it does not care about the backlog
    end_of_backlog.set_value();
    device->wait(*test.fresh, "copy");
    device->wait(*busy, "backlog");
    passed += test.passes();
  }
  return passed;
}

TEST(BatchedCopy, PassesFiftySelfTestsBesideABacklog) { EXPECT_EQ(passes_beside_a_backlog(true), kRuns); }

TEST(BatchedCopy, FailsAllOfThemWithoutTheFence) { EXPECT_EQ(passes_beside_a_backlog(false), 0); }

Scenario self_test(bool ordered) {
  return [=](ExploredDevice& device) {
    const auto busy = device.make_stream();
    SelfTest test(device, *busy);
    test.queue(ordered);
    device.wait(*test.fresh, "copy");
    if (!ordered) device.wait(*busy, "backlog");
    if (!test.passes()) device.fail("the self-test fails");
  };
}

TEST(BatchedCopy, IsOrderedInEverySchedule) {
  const Exploration all = explore_all(self_test(true), 100000);
  EXPECT_FALSE(all.violation.has_value()) << all.violation->report();
  EXPECT_TRUE(all.complete);
}

TEST(BatchedCopy, RacesWithTheZeroesWithoutTheFence) {
  const Exploration some = explore_random(self_test(false), 1, 1);
  ASSERT_TRUE(some.violation.has_value());
  EXPECT_NE(some.violation->message.find("self-test target"), std::string::npos) << some.violation->report();
}

}  // namespace
}  // namespace sluice
