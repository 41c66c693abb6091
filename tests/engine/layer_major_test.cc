// Layer-major prefill: what crosses the link, what the group's memory allows, and errors in the middle.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/expect_error.h"
#include "engine/residency_matrix.h"
#include "random_values.h"

namespace sluice::testing {
namespace {

std::vector<int32_t> random_ids(int64_t n, int64_t vocab_size) {
  RandomValues random(77);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < n; ++i) ids.push_back(static_cast<int32_t>(random.integer(0, vocab_size - 1)));
  return ids;
}

struct Prompt {
  explicit Prompt(const ExpertSettings& settings, const SessionOptions& options = {160, 8})
      : runtime(*model.device, *model.model, settings), session(runtime, options) {}
  std::vector<float> run(int64_t tokens) {
    const auto logits = session.prefill(random_ids(tokens, model.model->info().vocab_size));
    return {logits.begin(), logits.end()};
  }
  ExpertReport report() { return runtime.resident()->report(); }
  int64_t waits(const char* why) const {
    const auto found = model.device->host_waits().find(why);
    return found == model.device->host_waits().end() ? 0 : found->second;
  }

  MatrixModel model{"qwen3_moe", std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/golden/qwen3_moe",
                    Compute::kF32};
  Runtime runtime;
  Session session;
};

ExpertSettings settings_of(PrefillMode mode, int64_t slots = 12, int64_t ring = 8) {
  ExpertSettings settings;
  settings.slots = slots;
  settings.ring_slots = ring;
  settings.prefill = mode;
  settings.audit_every = 1;
  return settings;
}

TEST(LayerMajor, MovesEachAbsentExpertOnceForAPromptOfManyChunks) {
  Prompt together(settings_of(PrefillMode::kLayerMajor)), apart(settings_of(PrefillMode::kStream));
  EXPECT_EQ(together.run(150), apart.run(150));
  const ExpertReport once = together.report(), each = apart.report();
  ASSERT_EQ(once.passes.size(), 1u);
  EXPECT_EQ(once.passes[0].way, PassWay::kLayerMajor);
  EXPECT_EQ(once.passes[0].chunks, 19);
  const ExpertShape shape = expert_shape(together.model.model->info());
  const auto absent = static_cast<uint64_t>(shape.layers * shape.experts - once.passes[0].resident_rows);
  EXPECT_EQ(once.streamed_bytes, absent * once.layers[0].row_bytes);
  EXPECT_EQ(each.passes.size(), 19u);
  EXPECT_GT(each.streamed_bytes, 10 * once.streamed_bytes);
  EXPECT_EQ(together.waits("residents of a pass"), 1);
  EXPECT_EQ(together.waits("prefill chunk"), 0);
}

TEST(LayerMajor, AGroupHoldsWholeChunksUpToItsTokens) {
  ExpertSettings settings = settings_of(PrefillMode::kLayerMajor);
  settings.prefill_group = 44;  // five chunks of 8
  Prompt prompt(settings);
  prompt.run(150);
  std::vector<int64_t> rows;
  for (const PassRecord& pass : prompt.report().passes) rows.push_back(pass.rows);
  EXPECT_EQ(rows, (std::vector<int64_t>{40, 40, 40, 30}));
  EXPECT_EQ(prompt.waits("prefill chunk"), 3);
}

TEST(LayerMajor, AGroupSmallerThanTwoChunksTakesThemOneByOne) {
  ExpertSettings settings = settings_of(PrefillMode::kLayerMajor);
  settings.prefill_group = 11;
  Prompt prompt(settings);
  prompt.run(20);
  EXPECT_EQ(prompt.report().passes.size(), 3u);
}

TEST(LayerMajor, ChunksHaveOutputsOfTheirOwnOnlyWhereALayerCrossesInSeveralTiles) {
  Prompt tiles(settings_of(PrefillMode::kLayerMajor, 12, 8)),
      layers(settings_of(PrefillMode::kLayerMajor, 24, 16));
  EXPECT_TRUE(tiles.runtime.resident()->splits_layers());
  EXPECT_NE(tiles.runtime.group_memory()->outputs.data(), nullptr);
  EXPECT_FALSE(layers.runtime.resident()->splits_layers());
  EXPECT_EQ(layers.runtime.group_memory()->outputs.data(), nullptr);
  EXPECT_EQ(tiles.run(60), layers.run(60));
}

TEST(LayerMajor, GroupMemoryIsMadeWithTheSessionAndNothingLater) {
  Prompt prompt(settings_of(PrefillMode::kLayerMajor));
  prompt.run(9);
  const size_t before = prompt.model.device->allocated_bytes();
  prompt.run(150);
  EXPECT_EQ(prompt.model.device->allocated_bytes(), before);
  const ModelInfo& info = prompt.model.model->info();
  EXPECT_EQ(most_group_tokens(info, {}, BatchUse::kGroup),
            static_cast<int64_t>(kGroupBytes / group_bytes_per_token(info, BatchUse::kGroup)));
}

TEST(LayerMajor, ModesThatNeverGroupReserveNothing) {
  Prompt stream(settings_of(PrefillMode::kStream)), touched(settings_of(PrefillMode::kTouched));
  EXPECT_EQ(stream.runtime.group_tokens(), 0);
  EXPECT_EQ(touched.runtime.group_tokens(), 0);
}

TEST(PassReport, BytesArePredictedExactlyFromWhatDecodeHasLeft) {
  Prompt prompt(settings_of(PrefillMode::kStream, 20, 8));
  std::vector<int32_t> ids = random_ids(20, 300);
  for (int turn = 0; turn < 4; ++turn) {
    prompt.session.prefill(ids);
    for (int32_t id = 0; id < 9; ++id) prompt.session.decode((id * 37 + turn) % 300);
    for (int32_t& id : ids) id = (id + 11) % 300;
  }
  const ExpertReport report = prompt.report();
  ASSERT_EQ(report.passes.size(), 12u);
  EXPECT_LT(report.passes.back().streamed_bytes, report.passes.front().streamed_bytes);
  for (const PassRecord& pass : report.passes) {
    EXPECT_DOUBLE_EQ(pass.predicted_bytes, static_cast<double>(pass.streamed_bytes));
  }
  EXPECT_EQ(prompt.waits("report"), 2) << "no host wait of its own";
}

// Of two sessions one has seen a prompt that goes to few experts, the other one that goes to all.
TEST(PassReport, ATouchedPassTeachesHowManyExpertsTheNextOneWants) {
  const auto predicted = [](std::vector<int32_t> ids) {
    Prompt prompt(settings_of(PrefillMode::kTouched, 24, 16), {160, 18});
    for (int turn = 0; turn < 2; ++turn) {
      prompt.session.prefill(ids);
      for (int32_t& id : ids) id = (id + 1) % 300;  // nothing of it lies in the cache
    }
    const ExpertReport report = prompt.report();
    EXPECT_EQ(report.passes.size(), 2u);
    for (const PassRecord& pass : report.passes) EXPECT_EQ(pass.way, PassWay::kTouched);
    EXPECT_EQ(prompt.waits("report"), 2) << "no host wait of its own";
    return report.passes.back().predicted_bytes;
  };
  EXPECT_LT(predicted(std::vector<int32_t>(18, 7)), predicted(random_ids(18, 300)));
}

TEST(PassReport, KeepsTheLastPassesAndTheTotalsOfAll) {
  Prompt prompt(settings_of(PrefillMode::kLayerMajor));
  const int rounds = static_cast<int>(kPassHistory) + 10;
  for (int i = 0; i < rounds; ++i) prompt.session.prefill(std::vector<int32_t>(3, i % 300));
  const ExpertReport report = prompt.report();
  EXPECT_EQ(report.passes.size(), kPassHistory);
  const PassTotals& totals = report.totals[static_cast<size_t>(PassWay::kLayerMajor)];
  EXPECT_EQ(totals.passes, static_cast<uint64_t>(rounds));
  EXPECT_EQ(totals.rows, static_cast<uint64_t>(3 * rounds));
  EXPECT_EQ(totals.streamed_bytes, report.streamed_bytes);
}

TEST(PassReport, SaysWhyAForcedWayWasNotTaken) {
  Prompt prompt(settings_of(PrefillMode::kTouched), {160, 32});
  prompt.run(17);
  const ExpertReport report = prompt.report();
  ASSERT_EQ(report.passes.size(), 1u);
  EXPECT_EQ(report.passes[0].way, PassWay::kStream);
  EXPECT_EQ(report.passes[0].fallback,
            "touched does not fit: 17 tokens may need 8 experts of a layer, and half of the ring holds 4");
}

TEST(LayerMajor, AnErrorBetweenItsChunksLeavesNothingInTheCache) {
  Prompt fresh(settings_of(PrefillMode::kStream));
  const std::vector<float> want = fresh.run(40);
  for (int stop = 1; stop <= 13; stop += 3) {
    Prompt prompt(settings_of(PrefillMode::kLayerMajor));
    int calls = 0;
    prompt.session.between_layers([&] {
      if (++calls == stop) throw Error(ErrorCode::kCancelled, "the user left");
    });
    expect_error(ErrorCode::kCancelled, {"the user left"}, [&] { prompt.run(40); });
    EXPECT_TRUE(prompt.session.ids().empty());
    prompt.session.between_layers(nullptr);
    EXPECT_EQ(prompt.run(40), want) << "stopped at call " << stop;
    EXPECT_EQ(prompt.session.cached_tokens(), 0);
    EXPECT_NO_THROW(prompt.report());
  }
}

}  // namespace
}  // namespace sluice::testing
