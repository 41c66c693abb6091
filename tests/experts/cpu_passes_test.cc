// Trials of the CPU in streaming passes, on a machine whose times are given.
#include "experts/cpu_passes.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

const PassRates kRates{.link_bytes_per_ms = 1000, .compute_ms_per_token = 0.01, .cpu = {}};

/// Passes of several lengths that take `factor` of their time with the CPU.
class Passes {
 public:
  /// Runs `n` of them and returns how many went with the CPU.
  int run(int n, double factor) {
    int with = 0;
    for (int i = 0; i < n; ++i) {
      const bool cpu = passes_.next_with();
      const double length = 1 + number_++ % 5;
      const double alone = 100 * length;  // the link is the limit
      passes_.note({cpu, static_cast<int64_t>(100 * length), alone * 1000, cpu ? factor * alone : alone},
                   kRates);
      with += cpu ? 1 : 0;
    }
    return with;
  }
  CpuPasses::State state() const { return passes_.state(); }
  const CpuPasses& operator*() const { return passes_; }

 private:
  CpuPasses passes_;
  int number_ = 0;
};

TEST(CpuPasses, TakeTurnsUntilTheVerdict) {
  Passes passes;
  EXPECT_EQ((*passes).describe(), "left out: no pass would have gained");
  EXPECT_EQ(passes.run(1, 0.6), 0);
  EXPECT_EQ((*passes).describe(), "measuring");
  EXPECT_EQ(passes.run(4, 0.6), 2);
  EXPECT_EQ(passes.state(), CpuPasses::State::kTrial);
  EXPECT_EQ(passes.run(1, 0.6), 1);
  EXPECT_EQ(passes.state(), CpuPasses::State::kOn);
  EXPECT_NEAR((*passes).ratio(), 0.6, 1e-9);  // whatever the lengths
  EXPECT_EQ((*passes).describe(), "on, a pass took 0.60 of its time without the CPU");
}

TEST(CpuPasses, GoOnWithOneCheckInEightAndStopOnceTheCpuNoLongerPays) {
  Passes passes;
  passes.run(6, 0.6);
  EXPECT_EQ(passes.run(80, 0.6), 70);
  EXPECT_EQ(passes.state(), CpuPasses::State::kOn);
  EXPECT_EQ(passes.run(8, 1.1), 7);
  EXPECT_EQ(passes.state(), CpuPasses::State::kOff);
  EXPECT_EQ(passes.run(15, 1.1), 0);
}

TEST(CpuPasses, EndATrialThatIsLostAtTheFirstPair) {
  Passes passes;
  EXPECT_EQ(passes.run(2, 1.5), 1);
  EXPECT_EQ(passes.state(), CpuPasses::State::kOff);
  EXPECT_EQ((*passes).describe(), "off, a pass took 1.50 of its time without the CPU");
}

TEST(CpuPasses, CostAFewPassesWhereTheCpuDoesNotPay) {
  Passes passes;
  EXPECT_EQ(passes.run(6 + 15, 0.99), 3);  // not enough to be worth it
  EXPECT_EQ(passes.state(), CpuPasses::State::kOff);
  EXPECT_EQ(passes.run(1 + 6, 0.99), 3);
  EXPECT_EQ(passes.run(32 + 6, 0.99), 3);
  EXPECT_EQ(passes.run(10000, 0.99), 3 * (2 + (10000 - 70 - 134) / 262));  // ever rarer
}

TEST(CpuPasses, ComeBackWithTheShortestPauseAfterATrialThatWasWon) {
  Passes passes;
  passes.run(6 + 16 + 6 + 32, 0.99);  // the second pause was twice the first
  EXPECT_EQ(passes.state(), CpuPasses::State::kTrial);
  passes.run(6, 0.5);
  EXPECT_EQ(passes.state(), CpuPasses::State::kOn);
  for (int i = 0; i < 100 && passes.state() == CpuPasses::State::kOn; ++i) passes.run(1, 2);
  passes.run(16, 2);
  EXPECT_EQ(passes.state(), CpuPasses::State::kTrial);
}

}  // namespace
}  // namespace sluice
