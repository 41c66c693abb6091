// Decode steps that run as recorded graphs, against the same steps queued one operation at a time.
#include "engine/golden_checks.h"

#include "gpu/gpu.h"

namespace sluice::testing {
namespace {

std::filesystem::path folder(const char* name) {
  return std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/golden" / name;
}

std::vector<float> copy_of(std::span<const float> values) { return {values.begin(), values.end()}; }

struct Way {
  const char* model;
  int64_t slot_divisor;
  LookaheadMode lookahead;
  bool side;
  int64_t budget;
};

class RecordedSteps : public ::testing::TestWithParam<Way> {};

// An observer has to see each layer's routes, so its steps are queued one operation at a time.
TEST_P(RecordedSteps, GiveTheSameBitsAtEveryPosition) {
  const Way& way = GetParam();
  const GoldenModel golden(folder(way.model), {}, &gpu());
  const ModelInfo& info = golden.model().info();
  ExpertSettings settings;
  settings.slots = info.experts * static_cast<int64_t>(info.moe_layers.size()) / way.slot_divisor;
  settings.lookahead = way.lookahead;
  settings.lookahead_budget = way.budget;
  settings.compare.side_lookahead = way.side;
  settings.audit_every = 1;
  const auto direct_runtime = golden.runtime(settings), recorded_runtime = golden.runtime(settings);
  Session direct(*direct_runtime, {.capacity_tokens = 128}),
      recorded(*recorded_runtime, {.capacity_tokens = 128});
  int64_t observed = 0;
  direct.observe_routes([&](int64_t, std::span<const int32_t>, int64_t) { ++observed; });
  const std::vector<int32_t> prompt = {1, 17, 5, 99, 3};
  EXPECT_EQ(copy_of(recorded.prefill(prompt)), copy_of(direct.prefill(prompt)));
  int32_t id = 7;
  for (int step = 0; step < 60; ++step) {
    id = (id * 31 + 11) % 200;
    ASSERT_EQ(copy_of(recorded.decode(id)), copy_of(direct.decode(id))) << "step " << step;
    if (step == 30) {  // a prompt in between: its passes must find everything joined
      std::vector<int32_t> longer = recorded.ids();
      for (int32_t i = 0; i < 20; ++i) longer.push_back(i * 7 % 200);
      ASSERT_EQ(copy_of(recorded.prefill(longer)), copy_of(direct.prefill(longer)));
    }
  }
  EXPECT_GT(observed, 0);
  const ExpertReport a = direct_runtime->resident()->report(), b = recorded_runtime->resident()->report();
  for (size_t l = 0; l < a.layers.size(); ++l) {
    EXPECT_EQ(a.layers[l].routed, b.layers[l].routed);
    EXPECT_EQ(b.layers[l].routed, b.layers[l].hits + b.layers[l].misses);
    if (way.budget > 0 || way.lookahead == LookaheadMode::kOff) {
      EXPECT_EQ(a.layers[l].hits, b.layers[l].hits) << "layer " << l;
      EXPECT_EQ(a.layers[l].predicted, b.layers[l].predicted) << "layer " << l;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, RecordedSteps,
                         ::testing::Values(Way{"qwen3_moe", 2, LookaheadMode::kOff, false, 0},
                                           Way{"qwen3_moe", 4, LookaheadMode::kOn, false, 2},
                                           Way{"qwen3_moe", 2, LookaheadMode::kOn, false, 0},
                                           Way{"qwen3_moe_nvfp4", 4, LookaheadMode::kOn, true, 2},
                                           Way{"qwen2_moe", 4, LookaheadMode::kOn, false, 2},
                                           Way{"qwen2_moe", 1, LookaheadMode::kMeasure, false, 0}));

TEST(Capture, RunsNothingUntilTheGraphRunsAndThenEachTime) {
  const std::unique_ptr<Stream> stream = gpu().make_stream(), other = gpu().make_stream();
  const std::unique_ptr<Event> event = gpu().make_event("forked"), back = gpu().make_event("joined");
  constexpr size_t kBytes = 4096;
  const Buffer from = gpu().allocate(kBytes, "test", MemoryKind::kPinned);
  const Buffer to = gpu().allocate(kBytes, "test", MemoryKind::kPinned);
  const Buffer middle = gpu().allocate(kBytes, "test");
  std::memset(from.data(), 1, kBytes);
  std::memset(to.data(), 0, kBytes);
  const auto graph = stream->capture([&] {
    stream->copy("out", middle.data(), from.data(), kBytes);
    stream->record(*event);
    other->wait(*event);
    other->copy("back", to.data(), middle.data(), kBytes);
    other->record(*back);
    stream->wait(*back);
  });
  ASSERT_NE(graph, nullptr);
  EXPECT_EQ(graph->operations(), 2);
  gpu().wait(*stream, "test");
  EXPECT_EQ(to.as<uint8_t>()[kBytes - 1], 0);
  for (const uint8_t value : {3, 9}) {
    std::memset(from.data(), value, kBytes);
    stream->run(*graph);
    gpu().wait(*stream, "test");
    EXPECT_EQ(to.as<uint8_t>()[kBytes - 1], value);
  }
  EXPECT_EQ(gpu().elapsed_us(*event, *back), std::nullopt);
  EXPECT_TRUE(gpu().done(*event));
}

TEST(Capture, ThatThrowsLeavesTheStreamAsItWas) {
  const std::unique_ptr<Stream> stream = gpu().make_stream();
  const Buffer to = gpu().allocate(64, "test", MemoryKind::kPinned), from = gpu().allocate(64, "test");
  EXPECT_THROW(stream->capture([&] {
    stream->copy("one", to.data(), from.data(), 64);
    throw std::runtime_error("in the middle");
  }),
               std::runtime_error);
  EXPECT_EQ(stream->totals().copies, 0u);
  EXPECT_NO_THROW(stream->copy("two", to.data(), from.data(), 64));
  EXPECT_NO_THROW(gpu().wait(*stream, "test"));
}

}  // namespace
}  // namespace sluice::testing
