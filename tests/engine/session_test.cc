// Sessions: cached prefixes, limits, and generation.
#include "engine/session.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "checkpoint/checkpoint.h"
#include "random_values.h"

namespace sluice {
namespace {

using sluice::testing::expect_error;

class SessionOf : public ::testing::Test {
 protected:
  void SetUp() override {
    checkpoint_ = Checkpoint::open(std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/golden/qwen3_moe");
    device_ = make_host_device(2);
    model_ = load_model(checkpoint_, *device_, {});
    runtime_ = std::make_unique<Runtime>(*device_, *model_, ExpertSettings());
  }
  std::vector<int32_t> random_ids(RandomValues& random, int64_t n) {
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < n; ++i)
      ids.push_back(static_cast<int32_t>(random.integer(0, model_->info().vocab_size - 1)));
    return ids;
  }
  std::vector<float> fresh_logits(const std::vector<int32_t>& ids) {
    Session session(*runtime_, {});
    const auto logits = session.prefill(ids);
    return {logits.begin(), logits.end()};
  }

  Checkpoint checkpoint_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Runtime> runtime_;
};

TEST_F(SessionOf, KeepsTheCommonPrefixAndGivesTheBitsOfAFreshRun) {
  RandomValues random(31);
  SCOPED_TRACE(random.trace());
  Session session(*runtime_, {.capacity_tokens = 0, .chunk_tokens = 16});
  std::vector<int32_t> ids = random_ids(random, 40);
  for (int turn = 0; turn < 12; ++turn) {
    const auto keep = static_cast<size_t>(random.integer(0, static_cast<int64_t>(ids.size())));
    std::vector<int32_t> next(ids.begin(), ids.begin() + static_cast<int64_t>(keep));
    for (const int32_t id : random_ids(random, random.integer(1, 30))) next.push_back(id);
    const auto logits = session.prefill(next);
    const std::vector<float> got(logits.begin(), logits.end());
    EXPECT_EQ(got, fresh_logits(next)) << "turn " << turn;
    EXPECT_EQ(session.ids(), next);
    const auto cached = static_cast<int64_t>(turn == 0 ? 0 : std::min(keep, next.size() - 1));
    EXPECT_GE(session.cached_tokens(), cached);
    ids = next;
  }
}

TEST_F(SessionOf, RunsAtLeastTheLastTokenOfARepeatedPrompt) {
  RandomValues random(32);
  const std::vector<int32_t> ids = random_ids(random, 10);
  Session session(*runtime_, {});
  session.prefill(ids);
  const auto again = session.prefill(ids);
  EXPECT_EQ(session.cached_tokens(), 9);
  EXPECT_EQ(std::vector<float>(again.begin(), again.end()), fresh_logits(ids));
}

TEST_F(SessionOf, RefusesWhatItCannotRun) {
  Session session(*runtime_, {.capacity_tokens = 8});
  const auto prefill = [&](std::vector<int32_t> ids) { return [&session, ids] { session.prefill(ids); }; };
  expect_error(ErrorCode::kInvalidArgument, {"empty"}, prefill({}));
  expect_error(ErrorCode::kInvalidArgument, {"prompt is too long: 9 tokens > 8 maximum"},
               prefill(std::vector<int32_t>(9, 1)));
  expect_error(ErrorCode::kInvalidArgument, {"token 320 at position 1", "vocabulary of 320"},
               prefill({1, 320}));
  expect_error(ErrorCode::kInvalidArgument, {"token -1 at position 0"}, prefill({-1}));
  session.prefill(std::vector<int32_t>(8, 1));
  expect_error(ErrorCode::kInvalidArgument, {"context of 8 tokens is full"}, [&] { session.decode(1); });
}

TEST_F(SessionOf, ACapacityAboveTheModelsPositionsIsCutToThem) {
  EXPECT_EQ(Session(*runtime_, {.capacity_tokens = 1 << 20}).capacity(), 512);
  EXPECT_EQ(Session(*runtime_, {}).capacity(), 512);
}

TEST_F(SessionOf, GenerationStopsAtAnEndTokenAtTheLimitOrWhenTold) {
  Session session(*runtime_, {.capacity_tokens = 12});
  const std::vector<int32_t> prompt = {5, 6, 7};
  GenerateOptions options;
  options.max_tokens = 100;
  const GenerateResult full = generate(session, prompt, options, nullptr);
  EXPECT_EQ(full.finish_reason, FinishReason::kLength);
  EXPECT_EQ(full.ids.size(), 10u);  // positions 3 to 11, and one token that needs no position

  const size_t first =
      static_cast<size_t>(std::find(full.ids.begin(), full.ids.end(), full.ids[4]) - full.ids.begin());
  options.end_ids = {full.ids[4]};
  const GenerateResult ended = generate(session, prompt, options, nullptr);
  EXPECT_EQ(ended.finish_reason, FinishReason::kStop);
  EXPECT_EQ(ended.ids,
            std::vector<int32_t>(full.ids.begin(), full.ids.begin() + static_cast<int64_t>(first) + 1));

  options.end_ids.clear();
  int seen = 0;
  const GenerateResult told =
      generate(session, prompt, options, [&](const SampledToken&) { return ++seen < 3; });
  EXPECT_EQ(told.finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(told.ids.size(), 3u);
  options.max_tokens = 0;
  expect_error(ErrorCode::kInvalidArgument, {"max_tokens"},
               [&] { generate(session, prompt, options, nullptr); });
}

TEST_F(SessionOf, TheSameSeedGivesTheSameTextAndAnotherSeedAnother) {
  const std::vector<int32_t> prompt = {5, 6, 7};
  GenerateOptions options;
  options.max_tokens = 40;
  options.sampling.temperature = 1;
  const auto text = [&](uint64_t seed, int64_t chunk) {
    Session session(*runtime_, {.capacity_tokens = 0, .chunk_tokens = chunk});
    options.sampling.seed = seed;
    return generate(session, prompt, options, nullptr).ids;
  };
  EXPECT_EQ(text(1, 512), text(1, 1));
  EXPECT_NE(text(1, 512), text(2, 512));
}

}  // namespace
}  // namespace sluice
