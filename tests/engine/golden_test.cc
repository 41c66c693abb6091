// Tiny checkpoints against the reference's logits, experts and greedy text, for every way of cutting the
// input.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <tuple>

#include "checkpoint/checkpoint.h"
#include "engine/session.h"
#include "models/golden.h"

namespace sluice {
namespace {

struct Outcome {
  std::vector<float> logits;
  std::map<int64_t, std::vector<int32_t>> top_k;
};

class GoldenOf : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const auto folder = std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/golden" / GetParam();
    golden_ = Golden::read(folder);
    checkpoint_ = Checkpoint::open(folder);
    device_ = make_host_device(2);
    model_ = load_model(checkpoint_, *device_, {});
    runtime_ = std::make_unique<Runtime>(*device_, *model_, ExpertSettings());
    ASSERT_GE(golden_.ids.size(), 2u);
  }

  Outcome run(size_t j, int64_t chunk, int64_t decode_from) {
    Session session(*runtime_, {.capacity_tokens = 0, .chunk_tokens = chunk});
    Outcome result;
    session.observe_routes([&](int64_t layer, std::span<const int32_t> ids, int64_t) {
      auto& all = result.top_k[layer];
      all.insert(all.end(), ids.begin(), ids.end());
    });
    session.run_all(golden_.ids[j], decode_from, [&](int64_t, std::span<const float> logits, int64_t) {
      result.logits.insert(result.logits.end(), logits.begin(), logits.end());
    });
    return result;
  }

  Golden golden_;
  Checkpoint checkpoint_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Runtime> runtime_;
};

constexpr int64_t kNever = int64_t{1} << 40;

TEST_P(GoldenOf, LogitsAndExpertsMatchTheReference) {
  for (size_t j = 0; j < golden_.ids.size(); ++j) {
    const Outcome got = run(j, 512, kNever);
    ASSERT_EQ(got.logits.size(), golden_.logits[j].size());
    float worst = 0;
    for (size_t i = 0; i < got.logits.size(); ++i)
      worst = std::max(worst, std::abs(got.logits[i] - golden_.logits[j][i]));
    EXPECT_LE(worst, 1e-3) << "sequence " << j;
    ASSERT_FALSE(golden_.top_k[j].empty());
    for (const auto& [layer, want] : golden_.top_k[j]) {
      const int64_t k = model_->info().top_k;
      const auto& ids = got.top_k.at(layer);
      ASSERT_EQ(ids.size(), want.size());
      for (int64_t r = 0; r < static_cast<int64_t>(golden_.ids[j].size()); ++r) {
        EXPECT_EQ(row_set(ids, k, r), row_set(want, k, r)) << "layer " << layer << ", row " << r;
      }
    }
  }
}

TEST_P(GoldenOf, EveryCutGivesTheSameBits) {
  for (size_t j = 0; j < golden_.ids.size(); ++j) {
    const Outcome whole = run(j, 512, kNever);
    for (const auto& [chunk, decode_from] : {std::pair<int64_t, int64_t>{1, kNever},
                                             {7, kNever},
                                             {64, kNever},
                                             {512, 0},
                                             {512, 1},
                                             {7, 10},
                                             {3, 5}}) {
      const Outcome cut = run(j, chunk, decode_from);
      EXPECT_TRUE(cut.logits == whole.logits) << "chunk " << chunk << ", decode from " << decode_from;
      EXPECT_TRUE(cut.top_k == whole.top_k) << "chunk " << chunk << ", decode from " << decode_from;
    }
  }
}

TEST_P(GoldenOf, GreedyTextEqualsTheReference) {
  ASSERT_FALSE(golden_.greedy.empty());
  Session session(*runtime_, {});
  GenerateOptions options;
  options.max_tokens = 24;
  const GenerateResult result = generate(session, golden_.ids[1], options, nullptr);
  std::vector<int32_t> all = golden_.ids[1];
  all.insert(all.end(), result.ids.begin(), result.ids.end());
  EXPECT_EQ(all, golden_.greedy);
  EXPECT_EQ(result.finish_reason, FinishReason::kLength);
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, GoldenOf,
                         ::testing::Values("qwen3_moe", "qwen3_moe_mixed_dense", "qwen3_moe_v4config_sharded",
                                           "qwen3_moe_nvfp4"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace sluice
