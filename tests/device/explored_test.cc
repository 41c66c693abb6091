// The explored device: races, torn bytes, events' rules, fences, replay and exhaustive search.
#include "device/explored/explored_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <set>

#include "base/error.h"
#include "device/explored/explore.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

constexpr int kCount = 8;

// One stream writes a buffer, another adds it up; a second round overwrites what the first has read.
struct ProducerConsumer {
  explicit ProducerConsumer(ExploredDevice& d, int rounds) : device(d) {
    for (int round = 0; round < rounds; ++round) run(round);
    device.wait(*consumer, "result");
  }

  void run(int round) {
    producer->wait(*used);
    unsigned* data = slot.as<unsigned>();  // torn numbers may be any
    producer->launch({.name = "produce", .reads = {}, .writes = {range_of(data, kCount)}},
                     [data, round](const HostContext&) {
                       for (int i = 0; i < kCount; ++i) data[i] = 1 + static_cast<unsigned>(round);
                     });
    producer->record(*filled);
    consumer->wait(*filled);
    unsigned* sum = sums.as<unsigned>() + round;
    consumer->launch({.name = "consume", .reads = {range_of(data, kCount)}, .writes = {range_of(sum, 1)}},
                     [data, sum](const HostContext&) {
                       *sum = 0;
                       for (int i = 0; i < kCount; ++i) *sum += data[i];
                     });
    consumer->record(*used);
  }

  ExploredDevice& device;
  Buffer slot = device.allocate_array<unsigned>(kCount, "slot");
  Buffer sums = device.allocate_array<unsigned>(16, "sums");
  std::unique_ptr<Stream> producer = device.make_stream("producer", Priority::kHighest);
  std::unique_ptr<Stream> consumer = device.make_stream("consumer", Priority::kNormal);
  std::unique_ptr<Event> filled = device.make_event("filled");
  std::unique_ptr<Event> used = device.make_event("used");
};

void check_sums(ExploredDevice& device, const ProducerConsumer& pair, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    if (pair.sums.as<unsigned>()[round] != static_cast<unsigned>(kCount * (1 + round)))
      return device.fail("a sum is wrong");
  }
}

Scenario producer_consumer(int rounds) {
  return [rounds](ExploredDevice& device) { check_sums(device, ProducerConsumer(device, rounds), rounds); };
}

Scenario without(FenceKind kind, const char* stream, const char* target, int rounds) {
  return [=](ExploredDevice& device) {
    device.drop(kind, stream, target);
    check_sums(device, ProducerConsumer(device, rounds), rounds);
  };
}

TEST(ExploredDevice, FindsNothingWhereEveryFenceIsThere) {
  const Exploration result = explore_random(producer_consumer(3), 300, 1);
  EXPECT_FALSE(result.violation.has_value()) << result.violation->report();
  EXPECT_EQ(result.schedules, 300);
}

TEST(ExploredDevice, NamesTheRaceOfAMissingWaitInTheFirstSchedule) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Exploration result =
        explore_random(without(FenceKind::kStreamWait, "consumer", "filled", 1), 1, seed);
    ASSERT_TRUE(result.violation.has_value()) << "seed " << seed;
    EXPECT_EQ(result.violation->kind, ViolationKind::kRace);
    EXPECT_THAT(result.violation->message, HasSubstr("slot[0, 32): "));
    EXPECT_THAT(result.violation->message, HasSubstr("kernel 'consume' on stream 'consumer'"));
    EXPECT_THAT(result.violation->message, HasSubstr("kernel 'produce' on stream 'producer'"));
  }
}

// The table of mutations: each fence that orders something is needed, and its removal is found at once.
TEST(ExploredDevice, FindsEachFenceThatIsTakenOut) {
  ExploredDevice plain({.seed = 3});
  { const ProducerConsumer pair(plain, 2); }
  int proven = 0;
  for (const Fence& fence : plain.fences()) {
    if (fence.kind != FenceKind::kRecord && fence.needed == 0) continue;
    if (fence.kind == FenceKind::kHostWait) continue;  // ends the scenario
    const Exploration result =
        explore_random(without(fence.kind, fence.stream.c_str(), fence.target.c_str(), 2), 1, 7);
    EXPECT_TRUE(result.violation.has_value()) << describe(fence);
    ++proven;
  }
  EXPECT_EQ(proven, 4);  // two events, each with a record and a wait
}

TEST(ExploredDevice, CountsWaitsThatOrderNothingNew) {
  ExploredDevice device({});
  const Buffer buffer = device.allocate(64, "buffer");
  const auto a = device.make_stream("a", Priority::kNormal), b = device.make_stream("b", Priority::kNormal);
  const auto event = device.make_event("event"), never = device.make_event("never");
  a->copy("fill", buffer.data(), buffer.as<std::byte>() + 32, 32);
  a->record(*event);
  b->wait(*event);
  b->wait(*event);
  b->wait(*never);
  device.wait(*b, "end");
  std::vector<std::array<int64_t, 3>> counts;
  for (const Fence& fence : device.fences()) counts.push_back({fence.uses, fence.bound, fence.needed});
  const std::vector<std::array<int64_t, 3>> expected = {{1, 0, 0}, {2, 2, 1}, {1, 0, 0}, {1, 1, 1}};
  EXPECT_EQ(counts, expected);
}

// With the check off, what remains is the bytes: some schedule must show the consumer half of the new ones.
TEST(ExploredDevice, ShowsTornBytesWhereAFenceIsMissing) {
  std::set<int> seen;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    ExploredDevice device({.seed = seed, .check_races = false});
    const Buffer slot = device.allocate_array<int>(kCount, "slot");
    const Buffer sum = device.allocate_array<int>(1, "sum");
    int *data = slot.as<int>(), *out = sum.as<int>();
    std::fill_n(data, kCount, 0);
    const auto a = device.make_stream("a", Priority::kNormal), b = device.make_stream("b", Priority::kNormal);
    a->launch({.name = "produce", .reads = {}, .writes = {range_of(data, kCount)}},
              [data](const HostContext&) { std::fill_n(data, kCount, 0x01010101); });
    b->launch({.name = "consume", .reads = {range_of(data, kCount)}, .writes = {range_of(out, 1)}},
              [data, out](const HostContext&) {
                *out = 0;
                for (int i = 0; i < kCount; ++i) *out += data[i] != 0 ? 1 : 0;
              });
    device.drain();
    seen.insert(*out);
  }
  EXPECT_EQ(seen, (std::set<int>{0, kCount / 2, kCount}));
}

TEST(ExploredDevice, TearsCopiesAtAnyByteAndInAnyOrder) {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    ExploredDevice device({.seed = seed, .check_races = false});
    const Buffer source = device.allocate(4, "source"), middle = device.allocate(4, "middle");
    const Buffer target = device.allocate(4, "target");
    std::memcpy(source.data(), "wxyz", 4);
    std::memcpy(middle.data(), "....", 4);
    const auto a = device.make_stream("a", Priority::kNormal), b = device.make_stream("b", Priority::kNormal);
    const CopyEntry halves[] = {{middle.data(), source.data(), 2},
                                {middle.as<char>() + 2, source.as<char>() + 2, 2}};
    a->copy_batch("in", halves);
    auto *from = middle.as<char>(), *to = target.as<char>();
    b->launch({.name = "look", .reads = {range_of(from, 4)}, .writes = {range_of(to, 4)}},
              [=](const HostContext&) { std::memcpy(to, from, 4); });
    device.drain();
    seen.insert(std::string(to, 4));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"....", "w...", "wx..", "wxy.", ".xyz", "..yz", "...z", "wxyz"}));
}

TEST(ExploredDevice, RunsEverythingLateInSomeSchedulesAndEverythingAtOnceInOthers) {
  std::set<int> ran_before_wait;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    ExploredDevice device({.seed = seed, .torn = false});
    const Buffer buffer = device.allocate(128, "buffer");
    const auto stream = device.make_stream("stream", Priority::kNormal);
    for (int i = 0; i < 6; ++i) stream->copy("copy", buffer.data(), buffer.as<std::byte>() + 64, 64);
    const auto event = device.make_event("unused");
    stream->record(*event);
    ran_before_wait.insert(static_cast<int>(device.history().size()));
    device.wait(*stream, "end");
    EXPECT_EQ(device.history().size(), 6u);
  }
  EXPECT_EQ(*ran_before_wait.begin(), 0);
  EXPECT_EQ(*ran_before_wait.rbegin(), 6);
  EXPECT_GT(ran_before_wait.size(), 3u);
}

TEST(ExploredDevice, ReplaysAViolationFromItsOptions) {
  const Scenario broken = without(FenceKind::kRecord, "consumer", "used", 4);
  for (const Exploration& found :
       {explore_random(broken, 10, 5), explore_random(broken, 10, 6), explore_all(broken, 10)}) {
    ASSERT_TRUE(found.violation.has_value());
    const Exploration again = explore_once(broken, found.violation->replay);
    ASSERT_TRUE(again.violation.has_value());
    EXPECT_EQ(again.violation->report(), found.violation->report());
    EXPECT_FALSE(found.violation->trace.empty());
  }
}

// What the order of two streams' steps can be; the host only queues and waits.
Scenario two_streams(bool with_kernels, int operations) {
  return [=](ExploredDevice& device) {
    const Buffer buffer = device.allocate(64, "buffer");
    const auto a = device.make_stream("a", Priority::kNormal), b = device.make_stream("b", Priority::kNormal);
    for (Stream* stream : {a.get(), b.get()}) {
      auto* data = buffer.as<char>() + (stream == a.get() ? 0 : 32);
      for (int i = 0; i < operations; ++i) {
        if (with_kernels) {
          stream->launch({.name = "step", .reads = {}, .writes = {range_of(data, 1)}},
                         [=](const HostContext&) { *data = static_cast<char>(i); });
        } else {
          stream->copy("step", data, data + 16, 16);
        }
      }
    }
    device.wait(*a, "a");
    device.wait(*b, "b");
  };
}

TEST(ExploredDevice, GivesTheSameScheduleForTheSameSeed) {
  std::set<std::vector<std::string>> different;
  for (const Strategy strategy : {Strategy::kRandom, Strategy::kPriorities}) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      const ExploreOptions options{.seed = seed, .strategy = strategy};
      ExploredDevice first(options), second(options);
      two_streams(false, 4)(first);
      two_streams(false, 4)(second);
      EXPECT_EQ(first.history(), second.history()) << "seed " << seed;
      different.insert(first.history());
    }
  }
  EXPECT_GT(different.size(), 5u);
}

TEST(ExploreAll, CountsTheInterleavingsOfTwoStreams) {
  const Exploration whole = explore_all(two_streams(true, 2), 1000);
  EXPECT_TRUE(whole.complete);
  EXPECT_EQ(whole.schedules, 6);  // 4 over 2
  const Exploration torn = explore_all(two_streams(false, 2), 1000);
  EXPECT_TRUE(torn.complete);
  EXPECT_EQ(torn.schedules, 70);  // 8 over 4
  const Exploration three = explore_all(two_streams(true, 3), 1000);
  EXPECT_EQ(three.schedules, 20);  // 6 over 3
  const Exploration cut = explore_all(two_streams(false, 2), 50);
  EXPECT_FALSE(cut.complete);
  EXPECT_EQ(cut.schedules, 50);
}

TEST(ExploreAll, FindsTheOneScheduleWithAWrongResult) {
  ExploreOptions options;
  options.check_races = false;
  const Scenario scenario = [](ExploredDevice& device) {
    const Buffer buffer = device.allocate_array<int>(1, "value");
    int* value = buffer.as<int>();
    *value = 0;
    const auto a = device.make_stream("a", Priority::kNormal), b = device.make_stream("b", Priority::kNormal);
    for (int i = 0; i < 3; ++i) {
      for (Stream* stream : {a.get(), b.get()}) {
        const int factor = stream == a.get() ? 1 : 0;
        stream->launch({.name = "step", .reads = {range_of(value, 1)}, .writes = {range_of(value, 1)}},
                       [=](const HostContext&) { *value = 2 * *value + factor; });
      }
    }
    device.wait(*a, "a");
    device.wait(*b, "b");
    if (*value == 0b101010) device.fail("the pattern 101010");
  };
  const Exploration result = explore_all(scenario, 1000, options);
  ASSERT_TRUE(result.violation.has_value());
  EXPECT_EQ(result.violation->message, "the pattern 101010");
}

}  // namespace
}  // namespace sluice
