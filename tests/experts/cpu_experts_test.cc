// Experts on the CPU through the executor that serves: bits, counts, workers that fail or hang.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "base/error.h"
#include "device/threaded/threaded_device.h"
#include "experts/forwards.h"

namespace sluice {
namespace {

ExpertSettings settings_with(CpuMode mode, int64_t slots, LookaheadMode lookahead, int32_t fetch_cap = 0) {
  ExpertSettings settings;
  settings.slots = slots;
  if (slots > 12) settings.ring_slots = 12;  // two tiles of all experts: any prompt may be touched
  settings.prefill = PrefillMode::kTouched;
  settings.lookahead = lookahead;
  settings.lookahead_budget = 2;
  settings.audit_every = 1;
  settings.cpu.mode = mode;
  settings.cpu.fetch_cap = fetch_cap;
  settings.cpu.threads = 2;
  return settings;
}

using MakeDevice = std::unique_ptr<Device> (*)();
struct Setting {
  const char* name;
  MakeDevice device;
  CpuMode mode;
  LookaheadMode lookahead;
  int64_t slots;
  int32_t fetch_cap;
  friend void PrintTo(const Setting& setting, std::ostream* out) { *out << setting.name; }
};

std::unique_ptr<Device> inline_device() { return make_host_device(2); }

class CpuExpertsBits : public ::testing::TestWithParam<Setting> {};

TEST_P(CpuExpertsBits, AreThoseOfExpertsReadWhereTheyLieAndTheCountsAddUp) {
  const Setting& s = GetParam();
  const auto device = s.device();
  Forwards forwards(*device, settings_with(s.mode, s.slots, s.lookahead, s.fetch_cap));
  for (int i = 0; i < 60; ++i) {
    forwards.decode({i % 12, 1 + i % 3, i % 5 == 0});
    if (i % 20 == 7) forwards.prefill({i % 12, 2});           // the way of a decode step
    if (i % 20 == 13) forwards.prefill({i % 12, kMostRows});  // touched, where the ring is large enough
  }
  const ExpertReport report = forwards.report();
  uint64_t on_cpu = 0, demand = 0, touched = 0;
  for (const ExpertLayerReport& layer : report.layers) {
    EXPECT_EQ(layer.routed, layer.hits + layer.misses + layer.cpu);
    on_cpu += layer.cpu + layer.touched_cpu + layer.streamed_cpu;
    demand += layer.misses * layer.row_bytes;
    touched += layer.touched_misses * layer.row_bytes;
    EXPECT_TRUE(s.mode != CpuMode::kAlways || s.fetch_cap > 0 || layer.misses == 0);
  }
  EXPECT_EQ(report.cpu.totals.experts, on_cpu);
  EXPECT_EQ(report.demand_bytes, demand);
  EXPECT_EQ(report.touched_bytes, touched);
  EXPECT_TRUE(s.mode != CpuMode::kAlways || on_cpu > 0);
  EXPECT_EQ(report.cpu.threads, 2);
}

INSTANTIATE_TEST_SUITE_P(
    Settings, CpuExpertsBits,
    ::testing::Values(
        Setting{"inline", inline_device, CpuMode::kAlways, LookaheadMode::kOff, 6, 0},
        Setting{"inline_lookahead", inline_device, CpuMode::kAlways, LookaheadMode::kOn, 8, 1},
        Setting{"inline_large_ring", inline_device, CpuMode::kAlways, LookaheadMode::kOn, 18, 1},
        Setting{"inline_auto", inline_device, CpuMode::kAuto, LookaheadMode::kOn, 8, 0},
        Setting{"threaded", make_threaded_device, CpuMode::kAlways, LookaheadMode::kOff, 6, 1},
        Setting{"threaded_lookahead", make_threaded_device, CpuMode::kAlways, LookaheadMode::kOn, 8, 0},
        Setting{"threaded_large_ring", make_threaded_device, CpuMode::kAlways, LookaheadMode::kOn, 18, 1},
        Setting{"threaded_auto", make_threaded_device, CpuMode::kAuto, LookaheadMode::kMeasure, 8, 0}),
    [](const auto& test) { return test.param.name; });

TEST(CpuInPasses, LeavesAQuarterOfEachLayersMissesOffTheLink) {
  const auto device = inline_device();
  ExpertSettings settings = settings_with(CpuMode::kAlways, kLayers * kExperts, LookaheadMode::kOff);
  settings.prefill = PrefillMode::kStream;
  settings.ring_slots = 4;
  Forwards forwards(*device, settings);
  forwards.prefill({0, kMostRows});
  forwards.prefill({1, kMostRows});  // the residents that the first one has left are no misses
  const ExpertReport report = forwards.report();
  const uint64_t row = report.layers[0].row_bytes;
  EXPECT_EQ(report.passes[0].resident_rows, 0);
  EXPECT_EQ(report.passes[0].cpu_experts, 2 * kLayers);  // of six, rounded up
  EXPECT_EQ(report.passes[0].streamed_bytes, 4 * kLayers * row);
  EXPECT_GT(report.passes[1].resident_rows, 0);
  uint64_t experts = 0, rows = 0;
  for (const ExpertLayerReport& layer : report.layers) {
    experts += layer.streamed_cpu;
    rows += layer.streamed_cpu_rows;
  }
  EXPECT_GT(experts, 0u);
  EXPECT_EQ(experts, report.cpu.totals.experts);
  EXPECT_EQ(rows, report.cpu.totals.rows);
}

TEST(CpuInPasses, TakesNoPartWhereResidentsCrossAgain) {
  const auto device = inline_device();
  ExpertSettings settings = settings_with(CpuMode::kAlways, 9, LookaheadMode::kOff);
  settings.prefill = PrefillMode::kStream;
  settings.compare.hits = HitMode::kOff;
  Forwards forwards(*device, settings);
  forwards.prefill({0, kMostRows});
  EXPECT_EQ(forwards.report().passes[0].cpu_experts, 0);
  EXPECT_EQ(forwards.on_cpu(), 0u);
}

/// A door that workers stop at.
class Door {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [this] { return open_; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

class CpuWorkers : public ::testing::TestWithParam<MakeDevice> {
 protected:
  const std::unique_ptr<Device> device_ = GetParam()();
  ExpertSettings settings_ = settings_with(CpuMode::kAlways, 8, LookaheadMode::kOff);
};

void expect_io_error(const std::function<void()>& body, const std::vector<std::string>& parts) {
  try {
    body();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    for (const std::string& part : parts) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
}

TEST_P(CpuWorkers, ThatHangFailTheStepAndGetNothingUntilTheyAnswer) {
  Door door;
  settings_.cpu.watchdog = std::chrono::milliseconds(100);
  settings_.cpu.before_work = [&](int64_t) { door.pass(); };
  Forwards forwards(*device_, settings_);
  expect_io_error([&] { forwards.decode({0}); },
                  {"MoE layer 0", "experts 0, 1", "did not answer within 100 ms"});
  // They still hang: the same step is right without them.
  forwards.decode({0});
  forwards.decode({1});
  EXPECT_EQ(forwards.on_cpu(), 0u);
  EXPECT_EQ(forwards.report().cpu.silences, 1u);
  door.open();
  // How soon they answer is theirs; then they get work again.
  for (int i = 2; forwards.on_cpu() < 2; ++i) {
    try {
      forwards.decode({i});
    } catch (const Error&) {  // a machine so busy that 100 ms are too few
    }
  }
}

TEST_P(CpuWorkers, ThatThrowFailTheStepAndWorkInTheNext) {
  std::atomic<int> calls{0};
  settings_.cpu.before_work = [&](int64_t layer) {
    if (layer == 1 && ++calls == 1) throw std::runtime_error("no more paper");
  };
  Forwards forwards(*device_, settings_);
  expect_io_error([&] { forwards.decode({0}); }, {"MoE layer 1", "a worker failed: no more paper"});
  const uint64_t before = forwards.on_cpu();
  forwards.decode({3});
  EXPECT_GT(forwards.on_cpu(), before);
}

TEST_P(CpuWorkers, ThatThrowInAStreamingPassFailThePromptAndWorkInTheNext) {
  std::atomic<int> calls{0};
  settings_.prefill = PrefillMode::kStream;
  settings_.cpu.before_work = [&](int64_t layer) {
    if (layer == 1 && ++calls == 1) throw std::runtime_error("no more paper");
  };
  Forwards forwards(*device_, settings_);
  expect_io_error(
      [&] {
        forwards.prefill({0, kMostRows});
      },
      {"MoE layer 1", "a worker failed: no more paper"});
  const uint64_t before = forwards.on_cpu();
  forwards.prefill({1, kMostRows});
  forwards.decode({2});
  EXPECT_GT(forwards.on_cpu(), before);
}

TEST_P(CpuWorkers, ThatHangInAStreamingPassFailThePromptAndAreLeftOutOfTheNext) {
  Door door;
  settings_.prefill = PrefillMode::kStream;
  settings_.cpu.watchdog = std::chrono::milliseconds(100);
  settings_.cpu.before_work = [&](int64_t) { door.pass(); };
  Forwards forwards(*device_, settings_);
  expect_io_error([&] { forwards.prefill({0, kMostRows}); }, {"MoE layer 0", "did not answer within 100 ms"});
  forwards.prefill({1, kMostRows});
  EXPECT_EQ(forwards.report().passes.back().cpu_experts, 0);
  door.open();
}

TEST_P(CpuWorkers, AreJoinedInTheMiddleOfTheirWork) {
  Door door;
  settings_.cpu.watchdog = std::chrono::milliseconds(20);
  settings_.cpu.before_work = [&](int64_t) { door.pass(); };
  std::thread opener;
  {
    Forwards forwards(*device_, settings_);
    EXPECT_THROW(forwards.decode({0}), Error);
    opener = std::thread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      door.open();
    });
  }
  opener.join();
}

INSTANTIATE_TEST_SUITE_P(Devices, CpuWorkers,
                         ::testing::Values(MakeDevice(inline_device), MakeDevice(make_threaded_device)),
                         [](const auto& test) { return test.index == 0 ? "inline" : "threaded"; });

}  // namespace
}  // namespace sluice
