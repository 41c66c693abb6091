// The timed device: durations that can be computed by hand, and who goes first.
#include "device/timed/timed_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>

#include "base/error.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

// 1 GB/s is 1000 bytes a microsecond; nothing else costs anything.
MachineModel plain_machine() {
  MachineModel model;
  model.name = "plain";
  model.link_bytes_per_s = 1e9;
  model.memory_bytes_per_s = 100e9;
  model.flops_per_s = 1e12;  // a million a microsecond
  model.link_latency_us = model.link_entry_us = model.link_entry_min_us = 0;
  model.gather_share = 1;
  model.launch_us = 0;
  model.small_kernel_us = 2;
  model.small_kernel_share = 0.25;
  model.wave_us = 100;
  model.host_call_us = model.host_wait_us = 0;
  return model;
}

struct Machine {
  explicit Machine(const MachineModel& model = plain_machine()) : device({.machine = model}) {}

  void copy(Stream& stream, const char* name, size_t bytes) {
    stream.copy(name, memory.data(), pinned.data(), bytes);
  }
  void compute(Stream& stream, const char* name, double us) {
    stream.launch({.name = name, .reads = {}, .writes = {}, .flops = static_cast<uint64_t>(us * 1e6)},
                  [](const HostContext&) {});
  }
  // Start and end of the only operation of that name.
  std::pair<double, double> span(const std::string& name) const {
    for (const TimelineSpan& span : device.timeline()) {
      if (span.name == name) return {span.start_us, span.end_us};
    }
    ADD_FAILURE() << name << " has not run";
    return {};
  }

  TimedDevice device;
  std::unique_ptr<Stream> compute_stream = device.make_stream();
  std::unique_ptr<Stream> copy_stream = device.make_stream("copy", Priority::kNormal);
  std::unique_ptr<Stream> high = device.make_stream("high", Priority::kHighest);
  std::unique_ptr<Event> event = device.make_event("event");
  Buffer memory = device.allocate(1 << 20, "memory");
  Buffer pinned = device.allocate(1 << 20, "pinned", MemoryKind::kPinned);
};

using Span = std::pair<double, double>;

#define EXPECT_SPAN(actual, from_us, to_us)    \
  do {                                         \
    const Span span_ = (actual);               \
    EXPECT_NEAR(span_.first, (from_us), 1e-3); \
    EXPECT_NEAR(span_.second, (to_us), 1e-3);  \
  } while (false)

TEST(TimedDevice, OverlapsACopyWithAKernelAndPutsTwoCopiesBehindEachOther) {
  Machine m;
  m.copy(*m.copy_stream, "first", 50'000);
  m.copy(*m.high, "second", 20'000);
  m.compute(*m.compute_stream, "kernel", 60);
  m.device.wait(*m.high, "end");
  EXPECT_NEAR(m.device.now_us(), 20, 1e-3);
  m.device.wait(*m.copy_stream, "end");
  EXPECT_NEAR(m.device.now_us(), 70, 1e-3);
  // Both were ready at once: the higher priority goes first.
  EXPECT_SPAN(m.span("second"), 0, 20);
  EXPECT_SPAN(m.span("first"), 20, 70);
  EXPECT_SPAN(m.span("kernel"), 0, 60);
  const TimedReport report = m.device.report();
  EXPECT_NEAR(report.link_to_device_busy_us, 70, 1e-3);
  EXPECT_NEAR(report.compute_busy_us, 60, 1e-3);
  EXPECT_NEAR(report.stream_busy_us.at("copy"), 50, 1e-3);
}

TEST(TimedDevice, EachDirectionOfTheLinkHasItsOwnRate) {
  Machine m;
  m.copy(*m.copy_stream, "up", 50'000);
  m.high->copy("down", m.pinned.as<char>() + 500'000, m.memory.as<char>() + 500'000, 50'000);
  m.device.wait(*m.copy_stream, "end");
  EXPECT_SPAN(m.span("up"), 0, 50);
  EXPECT_SPAN(m.span("down"), 0, 50);
}

TEST(TimedDevice, AKernelTakesTheLongestOfFlopsMemoryAndLink) {
  Machine m;
  const auto launch = [&](const char* name, ByteRange read, uint64_t flops) {
    m.compute_stream->launch({.name = name, .reads = {read}, .writes = {}, .flops = flops},
                             [](const HostContext&) {});
  };
  launch("memory", {m.memory.data(), 1'000'000}, 1'000'000);
  launch("flops", {m.memory.data(), 1000}, 30'000'000);
  launch("gather", {m.pinned.data(), 40'000}, 5'000'000);
  m.device.wait(*m.compute_stream, "end");
  EXPECT_SPAN(m.span("memory"), 0, 10);
  EXPECT_SPAN(m.span("flops"), 10, 40);
  EXPECT_SPAN(m.span("gather"), 40, 80);
}

TEST(TimedDevice, AGatherKernelSharesTheLinkWithACopy) {
  Machine m;
  m.copy(*m.copy_stream, "copy", 50'000);
  m.compute_stream->launch({.name = "gather", .reads = {{m.pinned.data(), 20'000}}, .writes = {}},
                           [](const HostContext&) {});
  m.device.wait(*m.copy_stream, "end");
  m.device.wait(*m.compute_stream, "end");
  EXPECT_SPAN(m.span("gather"), 0, 40);
  EXPECT_SPAN(m.span("copy"), 0, 70);
}

// What held up published copy streams: a small kernel there queues behind the blocks of the running product.
TEST(TimedDevice, ASmallKernelWaitsForTheRunningKernelUnlessItsPriorityIsHigher) {
  Machine m;
  m.compute(*m.compute_stream, "product", 1000);
  m.device.advance_host(30);
  m.compute(*m.copy_stream, "small", 1);
  m.compute(*m.high, "urgent", 1);
  m.device.wait(*m.copy_stream, "end");
  m.device.wait(*m.high, "end");
  EXPECT_SPAN(m.span("urgent"), 100, 102);
  // The urgent kernel took a quarter of the card for two microseconds.
  EXPECT_SPAN(m.span("product"), 0, 1000.5);
  EXPECT_SPAN(m.span("small"), 1000.5, 1002.5);
}

TEST(TimedDevice, SmallKernelsOfSeveralStreamsRunBesideEachOther) {
  Machine m;
  m.compute(*m.compute_stream, "a", 1);
  m.compute(*m.copy_stream, "b", 1);
  m.device.wait(*m.compute_stream, "end");
  m.device.wait(*m.copy_stream, "end");
  EXPECT_SPAN(m.span("a"), 0, 2);
  EXPECT_SPAN(m.span("b"), 0, 2);
}

TEST(TimedDevice, AWaitDelaysWhatFollowsUntilTheRecord) {
  Machine m;
  m.copy_stream->wait(*m.event);  // not recorded: no wait
  m.copy(*m.copy_stream, "copy", 10'000);
  m.copy_stream->record(*m.event);
  m.compute_stream->wait(*m.event);
  m.compute(*m.compute_stream, "kernel", 5);
  m.compute_stream->record(*m.event);
  EXPECT_FALSE(m.device.done(*m.event));
  m.device.advance_host(14.5);
  EXPECT_FALSE(m.device.done(*m.event));
  m.device.advance_host(1);
  EXPECT_TRUE(m.device.done(*m.event));
  EXPECT_SPAN(m.span("kernel"), 10, 15);
  EXPECT_NEAR(m.device.now_us(), 15.5, 1e-3);
}

TEST(TimedDevice, HostCallsAndLaunchesCostTime) {
  MachineModel model = plain_machine();
  model.host_call_us = 10;
  model.host_wait_us = 7;
  model.launch_us = 1;
  Machine m(model);
  m.compute(*m.compute_stream, "a", 3);
  m.compute(*m.compute_stream, "b", 3);
  m.device.wait(*m.compute_stream, "end");
  EXPECT_SPAN(m.span("a"), 10, 14);
  EXPECT_SPAN(m.span("b"), 20, 24);
  // The record is the third call.
  EXPECT_NEAR(m.device.now_us(), 37, 1e-3);
}

TEST(TimedDevice, BatchedCopiesReachTheMeasuredRates) {
  const MachineModel& model = machine_model("h200");
  const auto rate = [&](size_t bytes, size_t count) {
    Machine m(model);
    std::vector<CopyEntry> entries(count, CopyEntry{m.memory.data(), m.pinned.data(), bytes});
    m.copy_stream->copy_batch("batch", entries);
    m.device.wait(*m.copy_stream, "end");
    const auto [start, end] = m.span("batch");
    return static_cast<double>(bytes * count) / (end - start) / 1000;  // GB/s
  };
  EXPECT_NEAR(rate(1 << 20, 200), 54.3, 0.6);  // measured with 1.77 MB
  EXPECT_NEAR(rate(256 << 10, 1000), 49, 2.5);
  EXPECT_NEAR(rate(64 << 10, 1000), 43, 3);
  EXPECT_NEAR(rate(4 << 10, 1000), 2.3, 0.4);
}

TEST(TimedDevice, RunsForRealInSimulatedOrderAndTheSameWayEachTime) {
  std::vector<std::vector<double>> ends;
  for (int run = 0; run < 2; ++run) {
    Machine m(machine_model("rtx5070ti"));
    auto *from = m.pinned.as<int>(), *to = m.memory.as<int>();
    for (int i = 1; i <= 10; ++i) {
      m.compute_stream->launch({.name = "write", .reads = {}, .writes = {range_of(to + 1, 1)}},
                               [=](const HostContext&) { to[1] += i; });
      from[0] = 5;
      m.copy(*m.copy_stream, "copy", sizeof(int));
      m.copy_stream->record(*m.event);
      m.compute_stream->wait(*m.event);
    }
    m.device.wait(*m.compute_stream, "end");
    EXPECT_EQ(to[0], 5);
    EXPECT_EQ(to[1], 55);
    ends.emplace_back();
    for (const TimelineSpan& span : m.device.timeline()) ends.back().push_back(span.end_us);
  }
  EXPECT_EQ(ends[0].size(), 20u);
  EXPECT_EQ(ends[0], ends[1]);
}

TEST(TimedDevice, LeavesOutWhatItIsToldToAndPricesItAllTheSame) {
  TimedDevice device({.machine = plain_machine(),
                      .runs = [](const QueuedOp& op) { return std::string_view(op.name) != "product"; }});
  const auto stream = device.make_stream();
  int products = 0, plans = 0;
  stream->launch({.name = "plan", .reads = {}, .writes = {}}, [&](const HostContext&) { ++plans; });
  stream->launch({.name = "product", .reads = {}, .writes = {}, .flops = 50'000'000},
                 [&](const HostContext&) { ++products; });
  device.wait(*stream, "end");
  EXPECT_EQ(plans, 1);
  EXPECT_EQ(products, 0);
  EXPECT_NEAR(device.now_us(), 52, 1e-3);
}

TEST(TimedDevice, ThrowsTheFailureOfACopyAtTheNextHostWait) {
  Machine m;
  m.device.faults().add(Fault::kCopy, "experts");
  m.copy(*m.copy_stream, "experts", 64);
  EXPECT_THROW(m.device.wait(*m.copy_stream, "end"), Error);
  m.device.wait(*m.copy_stream, "end");
}

TEST(MachineModels, AreFoundByNameAndUnknownOnesAreRefused) {
  for (const MachineModel& model : machine_models()) {
    EXPECT_EQ(machine_model(model.name).name, model.name);
    EXPECT_GT(model.link_bytes_per_s, 1e9);
    EXPECT_GT(model.memory_bytes_per_s, model.link_bytes_per_s);
  }
  try {
    machine_model("rtx9999");
    FAIL() << "there is no such card";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("known are rtx5070ti, rtx4090"));
  }
}

TEST(Timeline, IsWrittenAsAChromeTrace) {
  const std::vector<TimelineSpan> spans = {{"a \"quoted\" name", "compute", 1, 2.5}, {"b", "copy", 2, 3}};
  const std::filesystem::path path = ::testing::TempDir() + "sluice_timeline_test.json";
  write_chrome_trace(spans, path);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::filesystem::remove(path);
  EXPECT_EQ(
      text.str(),
      "{\"traceEvents\":[\n"
      "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":0,\"tid\":0,\"args\":{\"name\":\"compute\"}},\n"
      "{\"ph\":\"X\",\"name\":\"a \\\"quoted\\\" name\",\"pid\":0,\"tid\":0,\"ts\":1.000,\"dur\":1.500},\n"
      "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":0,\"tid\":1,\"args\":{\"name\":\"copy\"}},\n"
      "{\"ph\":\"X\",\"name\":\"b\",\"pid\":0,\"tid\":1,\"ts\":2.000,\"dur\":1.000}\n"
      "]}\n");
  EXPECT_THROW(write_chrome_trace(spans, "/no/such/folder/trace.json"), Error);
}

}  // namespace
}  // namespace sluice
