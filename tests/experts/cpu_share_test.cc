// The share of the CPU on a simulated machine: rates in, verdicts and times out.
#include "experts/cpu_share.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace sluice {
namespace {

constexpr int kLayers = 8;

/// Steps of 8 layers with 2 to 4 misses each.
struct Machine {
  double base_ms = 2;                  // of a step, besides its experts
  double link_ms = 0.1, cpu_ms = 0.1;  // an expert
  double hand_over_ms = 0.01;          // a layer with work for the CPU
  double noise = 0;                    // a step takes up to this part longer or shorter
  uint64_t steps = 0;

  StepTimes step(const std::optional<FetchRule>& rule) {
    StepTimes times;
    times.step = base_ms;
    for (int l = 0; l < kLayers; ++l) {
      const auto misses = static_cast<int32_t>(2 + 3 * uniform(1, steps, static_cast<uint32_t>(l)));
      const int32_t fetched = rule ? rule->fetches(misses) : misses;
      const double link = fetched * link_ms, cpu = (misses - fetched) * cpu_ms;
      times.step += std::max(link, cpu) + (fetched < misses ? hand_over_ms : 0);
      times.link += link;
      times.cpu += cpu;
      times.fetched += static_cast<uint64_t>(fetched);
      times.computed += static_cast<uint64_t>(misses - fetched);
    }
    times.step *= 1 + noise * (2 * uniform(2, steps, 0) - 1);
    ++steps;
    return times;
  }
};

/// Runs `steps` with the share's rule; the ratio of the time to that of the same steps without the CPU.
double run(CpuShare& share, Machine& machine, int steps) {
  double with = 0, without = 0;
  for (int i = 0; i < steps; ++i) {
    Machine other = machine;
    without += other.step(std::nullopt).step;
    const StepTimes times = machine.step(share.next_step());
    with += times.step;
    share.note(times);
  }
  return with / without;
}

CpuShare share_for(const Machine& machine) { return {machine.link_ms, machine.cpu_ms}; }

TEST(CpuShare, LetsLinkAndCpuFinishTogether) {
  const CpuShare share(0.3, 0.1);
  EXPECT_DOUBLE_EQ(share.fraction(), 0.25);  // of four misses one crosses in 0.3 ms, three take 0.1 ms each
}

TEST(CpuShare, GoesOnBesideASlowLinkAndSavesMoreThanAFifth) {
  Machine machine{.link_ms = 0.5, .cpu_ms = 0.05};
  CpuShare share = share_for(machine);
  EXPECT_LT(run(share, machine, 1000), 1 / 1.2);
  EXPECT_EQ(share.state(), CpuShare::State::kOn);
  EXPECT_LT(share.with_ms(), share.without_ms());
}

TEST(CpuShare, GoesOffWhereTheCpuIsSlowAndCostsNextToNothing) {
  Machine machine{.link_ms = 0.02, .cpu_ms = 2, .hand_over_ms = 0.2};
  CpuShare share = share_for(machine);
  EXPECT_LT(run(share, machine, 20000), 1.01);
  EXPECT_EQ(share.state(), CpuShare::State::kOff);
  EXPECT_EQ(share.next_step(), std::nullopt);
}

TEST(CpuShare, TriesAgainMoreAndMoreSeldom) {
  // The rates promise a saving that handing over eats.
  Machine machine{.link_ms = 0.1, .cpu_ms = 0.1, .hand_over_ms = 0.3};
  CpuShare share = share_for(machine);
  const double ratio = run(share, machine, 20000);
  EXPECT_LT(ratio, 1.01);
  EXPECT_GT(share.trials(), 4u);
  EXPECT_LE(share.trials(), 9u);  // after 256, 512, 1024, 2048, then each 4096
}

TEST(CpuShare, KnowsBeforeATrialWhereNothingCanBeSaved) {
  Machine machine{.base_ms = 20, .link_ms = 0.002, .cpu_ms = 0.002, .hand_over_ms = 0.1};
  CpuShare share = share_for(machine);
  run(share, machine, 4000);
  EXPECT_EQ(share.trials(), 1u);
}

TEST(CpuShare, FollowsALinkThatBecomesSlow) {
  Machine machine{.link_ms = 0.01, .cpu_ms = 0.05};
  CpuShare share = share_for(machine);
  run(share, machine, 500);
  ASSERT_EQ(share.state(), CpuShare::State::kOff);
  machine.link_ms = 0.8;
  run(share, machine, 200);
  EXPECT_EQ(share.state(), CpuShare::State::kOn);
  EXPECT_NEAR(share.fraction(), 0.05 / 0.85, 0.005);
}

TEST(CpuShare, FollowsACpuThatBecomesBusy) {
  Machine machine{.link_ms = 0.2, .cpu_ms = 0.1};
  CpuShare share = share_for(machine);
  run(share, machine, 300);
  ASSERT_EQ(share.state(), CpuShare::State::kOn);
  machine.cpu_ms = 20;
  machine.hand_over_ms = 1;
  run(share, machine, 800);
  EXPECT_EQ(share.state(), CpuShare::State::kOff);
  EXPECT_LT(run(share, machine, 10000), 1.02);
}

TEST(CpuShare, NoiseChangesNeitherVerdict) {
  Machine fast_link{.link_ms = 0.02, .cpu_ms = 0.5, .hand_over_ms = 0.1, .noise = 0.3};
  CpuShare off = share_for(fast_link);
  EXPECT_LT(run(off, fast_link, 20000), 1.02);
  Machine slow_link{.link_ms = 0.5, .cpu_ms = 0.05, .noise = 0.3};
  CpuShare on = share_for(slow_link);
  EXPECT_LT(run(on, slow_link, 20000), 0.6);
}

TEST(CpuShare, GivesPromptsToTheCpuOnlyWhereDecodeFoundItWorthIt) {
  Machine machine{.link_ms = 0.3, .cpu_ms = 0.1};
  CpuShare share = share_for(machine);
  EXPECT_EQ(share.prompt(1), std::nullopt);
  run(share, machine, 100);
  ASSERT_EQ(share.state(), CpuShare::State::kOn);
  ASSERT_TRUE(share.prompt(9).has_value());
  EXPECT_EQ(share.prompt(1)->fetches(4), 1);   // 0.3 beside 3 x 0.1
  EXPECT_EQ(share.prompt(9)->fetches(12), 9);  // 9 x 0.3 beside 3 x 0.9
}

}  // namespace
}  // namespace sluice
