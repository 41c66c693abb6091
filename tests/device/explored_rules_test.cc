// The explored device: events have CUDA's rules, host waits order, and declarations are checked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "device/explored/explore.h"
#include "device/explored/explored_device.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

void fill(Stream& stream, const char* name, const Buffer& buffer, int value) {
  auto* data = buffer.as<char>();
  const auto bytes = static_cast<int64_t>(buffer.bytes());
  stream.launch({.name = name, .reads = {}, .writes = {range_of(data, bytes)}},
                [=](const HostContext&) { std::memset(data, value, static_cast<size_t>(bytes)); });
}

struct Streams {
  explicit Streams(ExploredDevice& d) : device(d) {}
  ExploredDevice& device;
  std::unique_ptr<Stream> a = device.make_stream("a", Priority::kNormal);
  std::unique_ptr<Stream> b = device.make_stream("b", Priority::kNormal);
  std::unique_ptr<Event> event = device.make_event("event");
  Buffer buffer = device.allocate(64, "buffer");
  Buffer other = device.allocate(64, "other");
};

std::vector<ViolationKind> kinds(const Exploration& result) {
  if (!result.violation.has_value()) return {};
  return {result.violation->kind};
}

// A missing fence may show only later, when the plan is written; until then its bytes are no plan.
TEST(ExploredRules, FollowsNoPlanThatNothingHasWritten) {
  const Scenario scenario = [](ExploredDevice& device) {
    const Streams s(device);
    const auto* count = s.buffer.as<int32_t>();
    const auto ranges = [count](RangeSink& sink) { sink.reads(range_of(count, *count)); };
    s.b->launch({.name = "follow", .reads = {range_of(count, 1)}}, ranges, [](const HostContext&) {});
    device.wait(*s.b, "follow");
  };
  const Exploration result = explore_random(scenario, 1, 1);
  ASSERT_EQ(kinds(result), std::vector{ViolationKind::kUnwrittenRead});
  EXPECT_EQ(result.violation->message,
            "kernel 'follow' on stream 'b' reads buffer[0, 4), which nothing has written");
}

// The second record is the one that counts, although the wait is for the same event.
TEST(ExploredEvents, AWaitBindsToTheLatestRecord) {
  const auto scenario = [](bool second_record) {
    return [=](ExploredDevice& device) {
      const Streams s(device);
      s.a->record(*s.event);
      fill(*s.a, "write", s.buffer, 1);
      if (second_record) s.a->record(*s.event);
      s.b->wait(*s.event);
      s.b->copy("read", s.other.data(), s.buffer.data(), 64);
      device.wait(*s.b, "end");
      device.wait(*s.a, "end");
    };
  };
  EXPECT_THAT(kinds(explore_all(scenario(true), 1000)), IsEmpty());
  EXPECT_EQ(kinds(explore_all(scenario(false), 1000)), std::vector{ViolationKind::kRace});
}

// A record after the wait was issued changes nothing for it.
TEST(ExploredEvents, AWaitDoesNotBindToALaterRecord) {
  const Scenario scenario = [](ExploredDevice& device) {
    const Streams s(device);
    s.a->record(*s.event);
    s.b->wait(*s.event);
    fill(*s.a, "write", s.buffer, 1);
    s.a->record(*s.event);
    s.b->copy("read", s.other.data(), s.buffer.data(), 64);
    device.wait(*s.b, "end");
    device.wait(*s.a, "end");
  };
  EXPECT_EQ(kinds(explore_all(scenario, 1000)), std::vector{ViolationKind::kRace});
}

TEST(ExploredEvents, WaitingForAnUnrecordedEventIsNoWait) {
  ExploredDevice device({});
  const Streams s(device);
  s.b->wait(*s.event);
  s.b->copy("copy", s.other.data(), s.buffer.data(), 64);
  device.wait(*s.b, "end");
  device.wait(*s.event, "nothing");
  EXPECT_TRUE(device.done(*s.event));
  EXPECT_THAT(device.violations(), IsEmpty());
}

TEST(ExploredEvents, OrderIsTransitive) {
  const Scenario scenario = [](ExploredDevice& device) {
    const Streams s(device);
    const auto c = device.make_stream("c", Priority::kNormal);
    const auto second = device.make_event("second");
    fill(*s.a, "write", s.buffer, 1);
    s.a->record(*s.event);
    c->wait(*s.event);
    c->record(*second);
    s.b->wait(*second);
    fill(*s.b, "overwrite", s.buffer, 2);
    device.wait(*s.b, "end");
    if (s.buffer.as<char>()[63] != 2) device.fail("the first write came last");
  };
  const Exploration result = explore_all(scenario, 1000);
  EXPECT_TRUE(result.complete);
  EXPECT_THAT(kinds(result), IsEmpty());
}

TEST(ExploredHost, AHostWaitOrdersWhatFollows) {
  const auto scenario = [](bool wait, bool through_event) {
    return [=](ExploredDevice& device) {
      const Streams s(device);
      fill(*s.a, "write", s.buffer, 1);
      s.a->record(*s.event);
      if (wait && through_event) device.wait(*s.event, "written");
      if (wait && !through_event) device.wait(*s.a, "written");
      fill(*s.b, "overwrite", s.buffer, 2);
      device.wait(*s.b, "end");
      device.host_reads({s.buffer.data(), 64}, "result");
    };
  };
  EXPECT_THAT(kinds(explore_random(scenario(true, true), 50, 1)), IsEmpty());
  EXPECT_THAT(kinds(explore_random(scenario(true, false), 50, 1)), IsEmpty());
  EXPECT_EQ(kinds(explore_random(scenario(false, false), 1, 1)), std::vector{ViolationKind::kRace});
}

TEST(ExploredHost, DoneOrdersOnlyWhenItSaysYes) {
  int yes = 0, no = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Scenario scenario = [&](ExploredDevice& device) {
      const Streams s(device);
      fill(*s.a, "write", s.buffer, 1);
      s.a->record(*s.event);
      const bool done = device.done(*s.event);
      ++(done ? yes : no);
      if (done) device.host_reads({s.buffer.data(), 64}, "result");
      if (done && s.buffer.as<char>()[0] != 1) device.fail("done, and not written");
      device.wait(*s.a, "end");
    };
    const Exploration result = explore_random(scenario, 1, seed);
    EXPECT_FALSE(result.violation.has_value()) << result.violation->report();
  }
  EXPECT_GT(yes, 0);
  EXPECT_GT(no, 0);
}

TEST(ExploredHost, NamesAHostWriteIntoAStagingSlotThatACopyStillReads) {
  const Scenario scenario = [](ExploredDevice& device) {
    const Streams s(device);
    device.host_writes({s.buffer.data(), 64}, "tokens");
    s.a->copy("upload", s.other.data(), s.buffer.data(), 64);
    device.host_writes({s.buffer.data(), 64}, "next tokens");
    device.wait(*s.a, "end");
  };
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Exploration result = explore_random(scenario, 1, seed);
    ASSERT_TRUE(result.violation.has_value()) << "seed " << seed;
    EXPECT_THAT(result.violation->message, HasSubstr("'next tokens' on the host"));
    EXPECT_THAT(result.violation->message, HasSubstr("copy 'upload' on stream 'a'"));
  }
}

TEST(ExploredHost, ThrowsTheFailureOfAnOperationAtTheNextHostWait) {
  ExploredDevice device({});
  const Streams s(device);
  device.faults().add(Fault::kCopy, "experts");
  s.a->copy("experts", s.other.data(), s.buffer.data(), 64);
  EXPECT_THROW(device.wait(*s.a, "end"), Error);
  device.wait(*s.a, "again");
  EXPECT_THAT(device.violations(), IsEmpty());
}

TEST(ExploredMemory, NamesABufferThatIsFreedWhileACopyNeedsIt) {
  const Scenario scenario = [](ExploredDevice& device) {
    const Streams s(device);
    {
      const Buffer brief = device.allocate(64, "brief");
      s.a->copy("copy", brief.data(), s.buffer.data(), 64);
    }
    device.wait(*s.a, "end");
  };
  const Exploration result = explore_all(scenario, 10);
  ASSERT_EQ(kinds(result), std::vector{ViolationKind::kFreedInUse});
  EXPECT_THAT(result.violation->message, HasSubstr("brief"));
}

TEST(ExploredMemory, RefusesARangeThatLeavesItsBuffer) {
  const Scenario scenario = [](ExploredDevice& device) {
    const Streams s(device);
    s.a->copy("copy", s.buffer.as<char>() + 32, s.other.data(), 33);
    device.wait(*s.a, "end");
  };
  const Exploration result = explore_all(scenario, 10);
  ASSERT_EQ(kinds(result), std::vector{ViolationKind::kOutOfBounds});
  EXPECT_THAT(result.violation->message, HasSubstr("buffer[32, 65)"));
}

// Rows that a plan on the device names are known only when the operation runs.
TEST(ExploredRanges, ChecksRangesThatDependOnData) {
  const auto scenario = [](int row) {
    return [=](ExploredDevice& device) {
      const Streams s(device);
      int* plan = s.other.as<int>();
      char* rows = s.buffer.as<char>();
      s.a->launch({.name = "plan", .reads = {}, .writes = {range_of(plan, 1)}},
                  [=](const HostContext&) { *plan = row; });
      s.a->launch(
          {.name = "gather", .reads = {range_of(plan, 1)}, .writes = {}},
          [=](RangeSink& sink) { sink.writes(range_of(rows + 16 * *plan, 16)); },
          [=](const HostContext&) { std::memset(rows + 16 * *plan, 1, 16); });
      s.b->launch({.name = "use", .reads = {range_of(rows, 16)}, .writes = {}}, [](const HostContext&) {});
      device.wait(*s.a, "end");
      device.wait(*s.b, "end");
    };
  };
  EXPECT_THAT(kinds(explore_random(scenario(1), 20, 1)), IsEmpty());
  EXPECT_EQ(kinds(explore_random(scenario(0), 1, 1)), std::vector{ViolationKind::kRace});
}

// y[i] += x[i] where `declared` says what it owns up to.
Scenario add_with(bool reads_y, bool reads_x, int64_t written) {
  return [=](ExploredDevice& device) {
    const Streams s(device);
    auto *x = s.buffer.as<int>(), *y = s.other.as<int>();
    for (int i = 0; i < 16; ++i) x[i] = y[i] = i;
    s.a->launch({.name = "add",
                 .reads = {range_of(x, reads_x ? 16 : 8), range_of(y, reads_y ? 16 : 0)},
                 .writes = {range_of(y, written)}},
                [=](const HostContext&) {
                  for (int i = 0; i < 16; ++i) y[i] += x[i];
                });
    device.wait(*s.a, "end");
    if (y[15] != 30) device.fail("the sum is wrong");
  };
}

TEST(Shadow, AcceptsTrueDeclarations) {
  const Exploration result = explore_random(add_with(true, true, 16), 10, 1, {.shadow = true});
  EXPECT_FALSE(result.violation.has_value()) << result.violation->report();
}

TEST(Shadow, FindsAnUndeclaredRead) {
  const Exploration result = explore_random(add_with(true, false, 16), 1, 1, {.shadow = true});
  ASSERT_EQ(kinds(result), std::vector{ViolationKind::kUndeclaredRead});
  EXPECT_THAT(result.violation->message, HasSubstr("kernel 'add' reads bytes of 'buffer' undeclared"));
}

TEST(Shadow, FindsThatAnOutputIsReadFirst) {
  const Exploration result = explore_random(add_with(false, true, 16), 1, 1, {.shadow = true});
  ASSERT_EQ(kinds(result), std::vector{ViolationKind::kUndeclaredRead});
  EXPECT_THAT(result.violation->message, HasSubstr("'other'"));
}

TEST(Shadow, FindsAnUndeclaredWrite) {
  const Exploration result = explore_random(add_with(true, true, 15), 1, 1, {.shadow = true});
  ASSERT_EQ(kinds(result), std::vector{ViolationKind::kUndeclaredWrite});
  EXPECT_THAT(result.violation->message, HasSubstr("other[60, 61)"));
}

// A kernel may declare a whole cache and write one row of it.
TEST(Shadow, AcceptsOutputsThatStayUntouched) {
  const Scenario scenario = [](ExploredDevice& device) {
    const Streams s(device);
    auto* data = s.buffer.as<char>();
    s.a->launch({.name = "store", .reads = {}, .writes = {range_of(data, 64)}},
                [=](const HostContext&) { data[7] = 3; });
    device.wait(*s.a, "end");
  };
  EXPECT_THAT(kinds(explore_random(scenario, 5, 1, {.shadow = true})), IsEmpty());
}

}  // namespace
}  // namespace sluice
