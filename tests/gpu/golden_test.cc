// Tiny checkpoints on the GPU against the reference's logits, experts and greedy text, through slots, with
// every way of a prompt, and the same bits for all of them.
#include "engine/golden_checks.h"

#include "base/error.h"
#include "gpu/gpu.h"

namespace sluice::testing {
namespace {

std::filesystem::path folder(const char* name) {
  return std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/golden" / name;
}

class GoldenOnGpu : public ::testing::TestWithParam<const char*> {
 protected:
  explicit GoldenOnGpu(Compute compute = Compute::kF32)
      : model_(folder(GetParam()), {}, &gpu(), computing_in(compute)),
        all_(model_.model().info().experts * static_cast<int64_t>(model_.model().info().moe_layers.size())) {}

  static ExpertSettings with_slots(int64_t slots) {
    ExpertSettings settings;
    settings.slots = slots;
    settings.audit_every = 1;
    return settings;
  }
  static Outcome run(const GoldenModel& model, const ExpertSettings& settings, int64_t chunk,
                     int64_t decode_from) {
    return model.run(*model.runtime(settings), 0, chunk, decode_from);
  }

  /// `cuts_too`: cutting a prompt changes no bit either.
  void expect_same_bits(bool cuts_too) const {
    const Outcome whole = run(model_, with_slots(all_), 512, kNever);
    for (const auto& [chunk, decode_from] :
         {std::pair<int64_t, int64_t>{7, kNever}, {24, kNever}, {512, 0}, {7, 10}, {512, kNever}}) {
      const Outcome cut = run(model_, with_slots(all_), chunk, decode_from);
      if (cuts_too) {
        ASSERT_TRUE(cut == whole) << "chunk " << chunk << ", decode from " << decode_from;
      }
      for (const int64_t slots : {all_ / 4, all_ / 2, all_}) {
        for (const PrefillMode mode :
             {PrefillMode::kAuto, PrefillMode::kStream, PrefillMode::kTouched, PrefillMode::kLayerMajor}) {
          for (const HitMode hits : {HitMode::kInPlace, HitMode::kDeviceToDevice, HitMode::kOff}) {
            ExpertSettings settings = with_slots(slots);
            settings.prefill = mode;
            settings.compare.hits = hits;
            settings.compare.side_lookahead = hits == HitMode::kOff;
            ASSERT_TRUE(run(model_, settings, chunk, decode_from) == cut)
                << slots << " slots, mode " << static_cast<int>(mode) << ", hits " << static_cast<int>(hits)
                << ", chunk " << chunk << ", decode from " << decode_from;
          }
        }
      }
    }
  }

  const GoldenModel model_;
  const int64_t all_;
};

class GoldenOnGpuInBf16 : public GoldenOnGpu {
 protected:
  GoldenOnGpuInBf16() : GoldenOnGpu(Compute::kBf16) {}
};

TEST_P(GoldenOnGpuInBf16, LogitsAreCloseToTheReferenceAndClearChoicesTheSame) {
  const GoldenModel reference(folder(GetParam()));
  model_.expect_logits_and_choices(reference, 3e-2, 0.1, with_slots(all_));
}
// Chunks of 16 rows or more run on tensor cores.
TEST_P(GoldenOnGpuInBf16, EverySwitchAndSlotCountGivesTheSameBits) { expect_same_bits(false); }

TEST_P(GoldenOnGpu, LogitsAndExpertsMatchTheReference) {
  model_.expect_logits_and_experts(1e-3, with_slots(all_));
}

TEST_P(GoldenOnGpu, EverySwitchSlotCountAndCutGivesTheSameBits) { expect_same_bits(true); }

// Rows that may not be locked go through a locked ring.
TEST_P(GoldenOnGpu, RowsWhoseLockWasRefusedGiveTheSameBits) {
  LoadOptions options = computing_in(Compute::kF32);
  options.host_rows.lock = LockMode::kOff;
  const GoldenModel staged(folder(GetParam()), {}, &gpu(), options);
  ASSERT_FALSE(staged.model().info().host_rows.staged_layers.empty());
  const Outcome whole = run(model_, with_slots(all_), 512, kNever);
  ExpertSettings settings = with_slots(all_ / 4);
  settings.audit_every = 0;
  for (const auto& [chunk, decode_from] : {std::pair<int64_t, int64_t>{7, kNever}, {512, 0}}) {
    EXPECT_TRUE(run(staged, settings, chunk, decode_from) == whole);
  }
  // The device can't read such rows to compare them.
  settings.audit_every = 1;
  EXPECT_THROW(staged.runtime(settings), Error);
}

TEST_P(GoldenOnGpu, GreedyTextEqualsTheReference) {
  for (const int64_t slots : {all_ / 4, all_}) model_.expect_greedy_text(with_slots(slots));
}

const auto kCheckpoints = ::testing::Values("qwen3_moe", "qwen3_moe_mixed_dense", "qwen3_moe_nvfp4",
                                            "qwen2_moe", "olmoe", "mixtral");
std::string name_of_case(const ::testing::TestParamInfo<const char*>& test) { return test.param; }
INSTANTIATE_TEST_SUITE_P(Checkpoints, GoldenOnGpu, kCheckpoints, name_of_case);
INSTANTIATE_TEST_SUITE_P(Checkpoints, GoldenOnGpuInBf16, kCheckpoints, name_of_case);

}  // namespace
}  // namespace sluice::testing
