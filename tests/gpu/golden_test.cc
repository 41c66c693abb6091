// Tiny checkpoints on the GPU against the reference's logits, experts and greedy text, through slots, with
// every way of a prompt, and the same bits for all of them.
#include <cmath>
#include <map>

#include "checkpoint/checkpoint.h"
#include "engine/session.h"
#include "gpu/gpu.h"
#include "models/golden.h"

namespace sluice::testing {
namespace {

constexpr int64_t kNever = int64_t{1} << 40;

struct Outcome {
  std::vector<float> logits;
  std::map<int64_t, std::vector<int32_t>> top_k;
};

class GoldenOnGpu : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const auto folder = std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/golden" / GetParam();
    golden_ = Golden::read(folder);
    checkpoint_ = Checkpoint::open(folder);
    model_ = load_model(checkpoint_, gpu(), {});
    all_ = model_->info().experts * static_cast<int64_t>(model_->info().moe_layers.size());
    ASSERT_GE(golden_.ids.size(), 2u);
  }

  Outcome run(const ExpertSettings& settings, size_t j, int64_t chunk, int64_t decode_from) {
    Runtime runtime(gpu(), *model_, settings);
    Session session(runtime, {.capacity_tokens = 0, .chunk_tokens = chunk});
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
  ExpertSettings with_slots(int64_t slots) const {
    ExpertSettings settings;
    settings.slots = slots;
    settings.audit_every = 1;
    return settings;
  }

  Golden golden_;
  Checkpoint checkpoint_;
  std::unique_ptr<Model> model_;
  int64_t all_ = 0;
};

TEST_P(GoldenOnGpu, LogitsAndExpertsMatchTheReference) {
  for (size_t j = 0; j < golden_.ids.size(); ++j) {
    const Outcome got = run(with_slots(all_), j, 512, kNever);
    ASSERT_EQ(got.logits.size(), golden_.logits[j].size());
    float worst = 0;
    for (size_t i = 0; i < got.logits.size(); ++i)
      worst = std::max(worst, std::abs(got.logits[i] - golden_.logits[j][i]));
    std::cout << "sequence " << j << ": worst logit error " << worst << "\n";
    EXPECT_LE(worst, 1e-3) << "sequence " << j;
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

TEST_P(GoldenOnGpu, EverySwitchSlotCountAndCutGivesTheSameBits) {
  const Outcome whole = run(with_slots(all_), 0, 512, kNever);
  for (const int64_t slots : {all_ / 4, all_ / 2, all_}) {
    for (const PrefillMode mode :
         {PrefillMode::kAuto, PrefillMode::kStream, PrefillMode::kTouched, PrefillMode::kLayerMajor}) {
      for (const auto& [chunk, decode_from] :
           {std::pair<int64_t, int64_t>{7, kNever}, {64, kNever}, {512, 0}, {7, 10}}) {
        ExpertSettings settings = with_slots(slots);
        settings.prefill = mode;
        for (const HitMode hits : {HitMode::kInPlace, HitMode::kDeviceToDevice, HitMode::kOff}) {
          settings.compare.hits = hits;
          settings.compare.side_lookahead = hits == HitMode::kOff;
          const Outcome cut = run(settings, 0, chunk, decode_from);
          ASSERT_TRUE(cut.logits == whole.logits)
              << slots << " slots, mode " << static_cast<int>(mode) << ", hits " << static_cast<int>(hits)
              << ", chunk " << chunk << ", decode from " << decode_from;
          ASSERT_TRUE(cut.top_k == whole.top_k);
        }
      }
    }
  }
}

// Rows that may not be locked go through a locked ring.
TEST_P(GoldenOnGpu, RowsWhoseLockWasRefusedGiveTheSameBits) {
  const Outcome whole = run(with_slots(all_), 0, 512, kNever);
  LoadOptions options;
  options.host_rows.lock = LockMode::kOff;
  model_ = load_model(checkpoint_, gpu(), options);
  ASSERT_FALSE(model_->info().host_rows.staged_layers.empty());
  for (const auto& [chunk, decode_from] : {std::pair<int64_t, int64_t>{7, kNever}, {512, 0}}) {
    ExpertSettings settings = with_slots(all_ / 4);
    settings.audit_every = 0;  // an audit reads the rows themselves
    EXPECT_TRUE(run(settings, 0, chunk, decode_from).logits == whole.logits);
  }
}

TEST_P(GoldenOnGpu, GreedyTextEqualsTheReference) {
  for (const int64_t slots : {all_ / 4, all_}) {
    Runtime runtime(gpu(), *model_, with_slots(slots));
    Session session(runtime, {});
    GenerateOptions options;
    options.max_tokens = 24;
    const GenerateResult result = generate(session, golden_.ids[1], options, nullptr);
    std::vector<int32_t> all = golden_.ids[1];
    all.insert(all.end(), result.ids.begin(), result.ids.end());
    EXPECT_EQ(all, golden_.greedy);
  }
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, GoldenOnGpu,
                         ::testing::Values("qwen3_moe", "qwen3_moe_mixed_dense", "qwen3_moe_nvfp4",
                                           "qwen2_moe", "olmoe", "mixtral"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace sluice::testing
