// The cost model: bytes, times, and which way wins where.
#include "experts/pass_cost.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

namespace sluice {
namespace {

const ExpertShape kShape{.layers = 10, .experts = 100, .top_k = 4};
const PassRates kRates{.link_bytes_per_ms = 1000, .compute_ms_per_token = 0.01, .spread = 1, .cpu = {}};

PassQuestion question(int64_t rows, int64_t resident = 0) {
  return {.rows = rows,
          .resident_rows = resident,
          .outside_region = resident,
          .listed = resident,
          .row_bytes = 500,
          .ensure_fits = rows <= 16,
          .touched_fits = rows <= 64};
}

PassWay way(PrefillMode mode, const PassQuestion& q, const PassRates& rates = kRates) {
  return choose_way(mode, kShape, rates, q).way;
}

TEST(PassCost, DistinctExpertsGrowFromKToAll) {
  EXPECT_DOUBLE_EQ(distinct_experts(kShape, 1, 0), 0);
  EXPECT_NEAR(distinct_experts(kShape, 1, 1), 4, 1e-9);
  EXPECT_NEAR(distinct_experts(kShape, 1, 2), 7.84, 1e-9);  // 100 (1 - 0.96^2)
  EXPECT_NEAR(distinct_experts(kShape, 1, 10000), 100, 1e-9);
  for (int64_t rows = 1; rows < 200; ++rows) {
    EXPECT_LT(distinct_experts(kShape, 1, rows - 1), distinct_experts(kShape, 1, rows));
  }
  EXPECT_DOUBLE_EQ(distinct_experts({.layers = 1, .experts = 4, .top_k = 4}, 1, 1), 4);
}

// 39, 63 and 78 % of 256 experts, 8 a token, were published for prompts of 67, 328 and 1022 tokens.
TEST(PassCost, TheUsualSpreadIsNearThePublishedCounts) {
  const ExpertShape shape{.layers = 40, .experts = 256, .top_k = 8};
  for (const auto& [rows, part] : {std::pair<int64_t, double>{67, 0.39}, {328, 0.63}, {1022, 0.78}}) {
    EXPECT_NEAR(distinct_experts(shape, kUsualSpread, rows) / 256, part, 0.1) << rows;
    const std::optional<double> spread = spread_of(shape, rows, part * 256);
    ASSERT_TRUE(spread.has_value());
    EXPECT_NEAR(*spread, kUsualSpread, 0.06) << rows;
    EXPECT_NEAR(distinct_experts(shape, *spread, rows), part * 256, 1e-9);
  }
}

TEST(PassCost, ASpreadIsFoundWhereTheCountTellsOne) {
  EXPECT_FALSE(spread_of(kShape, 1, 4).has_value());
  EXPECT_FALSE(spread_of({.layers = 1, .experts = 4, .top_k = 4}, 10, 4).has_value());
  EXPECT_NEAR(*spread_of(kShape, 10, distinct_experts(kShape, 1, 10)), 1, 1e-9);
  EXPECT_EQ(*spread_of(kShape, 10, 4), 0);    // all go where one goes
  EXPECT_EQ(*spread_of(kShape, 10, 100), 1);  // more than unrelated tokens would touch
  EXPECT_GT(*spread_of(kShape, 1000, 100), 0.6);
}

// With 50 of 100 experts touched by 64 tokens a touched pass beats streaming where the products take as long
// as half of the link.
TEST(PassCost, NarrowRoutesMakeTouchedPassesWorthwhile) {
  PassRates rates = kRates;
  rates.compute_ms_per_token = 4;
  EXPECT_EQ(way(PrefillMode::kAuto, question(60), rates), PassWay::kStream);
  rates.spread = 0.6;
  EXPECT_EQ(way(PrefillMode::kAuto, question(60), rates), PassWay::kTouched);
}

TEST(PassCost, StreamingOverlapsAndTheOthersAdd) {
  const PassForecast stream = forecast(PassWay::kStream, kShape, kRates, question(1000));
  EXPECT_DOUBLE_EQ(stream.bytes, 1000 * 500.0);
  EXPECT_DOUBLE_EQ(stream.ms, 500);  // link 500, compute 10
  PassRates slow = kRates;
  slow.compute_ms_per_token = 2;
  EXPECT_DOUBLE_EQ(forecast(PassWay::kStream, kShape, slow, question(1000)).ms, 2000);
  const PassForecast ensure = forecast(PassWay::kEnsure, kShape, slow, question(1));
  EXPECT_NEAR(ensure.bytes, 40 * 500, 1e-6);
  EXPECT_NEAR(ensure.ms, 20 + 2, 1e-6);
}

TEST(PassCost, ResidentExpertsDoNotCross) {
  EXPECT_DOUBLE_EQ(forecast(PassWay::kStream, kShape, kRates, question(8, 250)).bytes, 750 * 500.0);
  EXPECT_DOUBLE_EQ(forecast(PassWay::kStream, kShape, kRates, question(8, 5000)).bytes, 0);
  EXPECT_NEAR(forecast(PassWay::kTouched, kShape, kRates, question(1, 500)).bytes, 20 * 500, 1e-6);
}

TEST(PassCost, ShortPromptsFetchWhatTheyTouchAndLongOnesStream) {
  EXPECT_EQ(way(PrefillMode::kAuto, question(1)), PassWay::kEnsure);
  EXPECT_EQ(way(PrefillMode::kAuto, question(16)), PassWay::kEnsure);
  EXPECT_EQ(way(PrefillMode::kAuto, question(17)), PassWay::kTouched);
  EXPECT_EQ(way(PrefillMode::kAuto, question(64)), PassWay::kTouched);
  EXPECT_EQ(way(PrefillMode::kAuto, question(65)), PassWay::kStream);  // the ring holds no more
  PassRates slow = kRates;
  slow.compute_ms_per_token = 8;  // as long as the link: what does not overlap loses
  EXPECT_EQ(way(PrefillMode::kAuto, question(64), slow), PassWay::kStream);
  EXPECT_EQ(way(PrefillMode::kAuto, question(1), slow), PassWay::kEnsure);
}

TEST(PassCost, AForcedModeHoldsUnlessItDoesNotFit) {
  for (const int64_t rows : {1, 16, 17, 64, 65, 4096}) {
    EXPECT_EQ(way(PrefillMode::kStream, question(rows)), PassWay::kStream);
  }
  PassRates slow = kRates;
  slow.compute_ms_per_token = 8;
  EXPECT_EQ(way(PrefillMode::kTouched, question(64), slow), PassWay::kTouched);
  EXPECT_EQ(way(PrefillMode::kTouched, question(1), slow), PassWay::kEnsure);
  const PassForecast fallen = choose_way(PrefillMode::kTouched, kShape, slow, question(65));
  EXPECT_EQ(fallen.way, PassWay::kStream);
  EXPECT_TRUE(fallen.fell_back);
  EXPECT_FALSE(choose_way(PrefillMode::kAuto, kShape, slow, question(65)).fell_back);
  EXPECT_FALSE(choose_way(PrefillMode::kTouched, kShape, slow, question(64)).fell_back);
}

TEST(PassCost, LayerMajorMovesOnceWhatChunksMoveEach) {
  PassQuestion q = question(1050);
  q.chunk_rows = 100;
  EXPECT_DOUBLE_EQ(forecast(PassWay::kStream, kShape, kRates, q).bytes, 11 * 1000 * 500.0);
  EXPECT_DOUBLE_EQ(forecast(PassWay::kStream, kShape, kRates, q).ms, 11 * 500);
  EXPECT_DOUBLE_EQ(forecast(PassWay::kLayerMajor, kShape, kRates, q).bytes, 1000 * 500.0);
  EXPECT_DOUBLE_EQ(forecast(PassWay::kLayerMajor, kShape, kRates, q).ms, 500);
  EXPECT_TRUE(layer_major_wins(kShape, kRates, q));
  PassRates slow = kRates;
  slow.compute_ms_per_token = 10;  // the link never waits: fewer bytes all the same
  EXPECT_TRUE(layer_major_wins(kShape, slow, q));
  q = question(20, 1000);  // nothing crosses: short chunks keep their way
  q.chunk_rows = 10;
  EXPECT_FALSE(layer_major_wins(kShape, kRates, q));
}

TEST(PassCost, EachWayCountsOnItsOwnResidents) {
  PassQuestion q = question(8);
  q.resident_rows = 500;
  q.outside_region = 250;
  q.listed = 100;
  EXPECT_DOUBLE_EQ(forecast(PassWay::kStream, kShape, kRates, q).bytes, 900 * 500.0);
  const double wanted = 10 * distinct_experts(kShape, 1, 8) * 500;
  EXPECT_NEAR(forecast(PassWay::kEnsure, kShape, kRates, q).bytes, wanted / 2, 1e-6);
  EXPECT_NEAR(forecast(PassWay::kTouched, kShape, kRates, q).bytes, wanted * 0.75, 1e-6);
}

TEST(PassCost, AbsenceCountsForTheWaysThatMoveWhatIsWanted) {
  PassRates rates = kRates;
  rates.absence = 0.5;
  const PassQuestion q = question(8, 400);
  for (const PassWay way : {PassWay::kEnsure, PassWay::kTouched, PassWay::kStream}) {
    const PassForecast plain = forecast(way, kShape, kRates, q), learned = forecast(way, kShape, rates, q);
    EXPECT_DOUBLE_EQ(plain.absent_part, 0.6);
    EXPECT_DOUBLE_EQ(learned.bytes, way == PassWay::kStream ? plain.bytes : plain.bytes / 2);
  }
  rates.absence = 2;
  EXPECT_NEAR(forecast(PassWay::kTouched, kShape, rates, q).bytes, 10 * distinct_experts(kShape, 1, 8) * 500,
              1e-6);
}

TEST(PassCost, NothingIsStreamedWhereNothingIsAbsent) {
  EXPECT_EQ(way(PrefillMode::kAuto, question(4, 1000)), PassWay::kEnsure);
  EXPECT_EQ(way(PrefillMode::kAuto, question(40, 1000)), PassWay::kTouched);
}

TEST(PassCost, UnknownRatesCompareByNothingButDoNotDivide) {
  const PassForecast f = forecast(PassWay::kStream, kShape, PassRates(), question(100));
  EXPECT_EQ(f.ms, 0);
  EXPECT_EQ(name_of(PassWay::kEnsure), "ensure");
  EXPECT_EQ(name_of(PassWay::kTouched), "touched");
  EXPECT_EQ(name_of(PassWay::kStream), "stream");
}

PassRates with_cpu(double ms_per_pair, bool always = false) {
  PassRates rates = kRates;
  rates.cpu = {ms_per_pair, always};
  return rates;
}

// An expert takes 0.5 ms over the link, and 40 of 1000 tokens' 4000 pairs on the CPU.
TEST(PassCost, LinkAndCpuFinishAStreamingPassTogether) {
  const PassForecast shared = forecast(PassWay::kStream, kShape, with_cpu(0.0125), question(1000));
  EXPECT_DOUBLE_EQ(shared.cpu.part, 0.5);
  EXPECT_DOUBLE_EQ(shared.bytes, 500 * 500.0);
  EXPECT_DOUBLE_EQ(shared.ms, 250);
  const PassForecast slower = forecast(PassWay::kStream, kShape, with_cpu(0.0375), question(1000));
  EXPECT_DOUBLE_EQ(slower.cpu.part, 0.25);
  EXPECT_DOUBLE_EQ(slower.ms, 375);
}

TEST(PassCost, TheCpuTakesNoMoreThanLetsTheLinkKeepUpWithTheProducts) {
  PassRates rates = with_cpu(0.0125);
  rates.compute_ms_per_token = 0.4;  // 400 of the link's 500 ms
  const PassForecast shared = forecast(PassWay::kStream, kShape, rates, question(1000));
  EXPECT_NEAR(shared.cpu.part, 0.2, 1e-12);
  EXPECT_NEAR(shared.ms, 400, 1e-9);
  rates.overlap = false;  // their sum: every byte that does not cross counts
  EXPECT_DOUBLE_EQ(forecast(PassWay::kStream, kShape, rates, question(1000)).cpu.part, 0.5);
}

TEST(PassCost, TheCpuIsLeftOutWhereItSavesLittleOrNothingCrosses) {
  const auto part = [](const PassRates& rates, const PassQuestion& q, PassWay way = PassWay::kStream) {
    return forecast(way, kShape, rates, q).cpu.part;
  };
  EXPECT_EQ(part(kRates, question(1000)), 0);
  EXPECT_EQ(part(with_cpu(0.3), question(1000)), 0);  // 4 % of the misses
  EXPECT_EQ(part(with_cpu(0.01), question(1000, 1000)), 0);
  EXPECT_EQ(part(with_cpu(0.01), question(8), PassWay::kTouched), 0);
  EXPECT_EQ(part(with_cpu(0.0375), question(1000, 970)), 0);  // a quarter of three misses a layer
  PassRates computes = with_cpu(0.01);
  computes.compute_ms_per_token = 2;
  EXPECT_EQ(part(computes, question(1000)), 0);
}

TEST(PassCost, TheFixedPartIsThereWhateverItTakes) {
  const PassForecast fixed = forecast(PassWay::kLayerMajor, kShape, with_cpu(1, true), question(1000));
  EXPECT_DOUBLE_EQ(fixed.cpu.part, 0.25);
  EXPECT_DOUBLE_EQ(fixed.bytes, 750 * 500.0);
  EXPECT_DOUBLE_EQ(fixed.ms, 250 * 40.0);
  EXPECT_EQ(fixed.cpu.of(0), 0);
  EXPECT_EQ(fixed.cpu.of(1), 1);
  EXPECT_EQ(fixed.cpu.of(8), 2);
  EXPECT_EQ(fixed.cpu.of(9), 3);
  EXPECT_EQ((CpuPart{0.4, false}.of(4)), 1);  // down: the CPU is not to be the slower side
}

}  // namespace
}  // namespace sluice
