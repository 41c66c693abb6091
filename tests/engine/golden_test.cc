// Tiny checkpoints of the repository against the reference's logits, experts and greedy text, for every way
// of cutting the input and every number of slots.
#include "engine/golden_checks.h"

namespace sluice {
namespace {

std::filesystem::path folder_of(const std::string& name) {
  return std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/golden" / name;
}

class GoldenOf : public ::testing::TestWithParam<const char*> {
 protected:
  GoldenOf() : golden_(folder_of(GetParam())) {}
  testing::GoldenModel golden_;
};

TEST_P(GoldenOf, LogitsAndExpertsMatchTheReference) { golden_.expect_logits_and_experts(1e-3); }
TEST_P(GoldenOf, EveryCutGivesTheSameBits) { golden_.expect_same_bits_for_every_cut(); }
TEST_P(GoldenOf, GreedyTextEqualsTheReference) { golden_.expect_greedy_text(); }
TEST_P(GoldenOf, SlotsGiveTheSameBits) { golden_.expect_same_bits_with_slots(); }

class GoldenOfInBf16 : public GoldenOf {
 protected:
  testing::GoldenModel in_bf16_{folder_of(GetParam()), {}, nullptr, computing_in(Compute::kBf16)};
};

TEST_P(GoldenOfInBf16, LogitsAreCloseToTheReferenceAndClearChoicesTheSame) {
  in_bf16_.expect_logits_and_choices(golden_, 3e-2, 0.1);
}
TEST_P(GoldenOfInBf16, EveryCutGivesTheSameBits) { in_bf16_.expect_same_bits_for_every_cut(); }
TEST_P(GoldenOfInBf16, SlotsGiveTheSameBits) { in_bf16_.expect_same_bits_with_slots(); }

const auto kCheckpoints =
    ::testing::Values("qwen3_moe", "qwen3_moe_mixed_dense", "qwen3_moe_v4config_sharded", "qwen3_moe_nvfp4",
                      "qwen2_moe", "olmoe", "mixtral");
std::string name_of_case(const ::testing::TestParamInfo<const char*>& test) { return test.param; }
INSTANTIATE_TEST_SUITE_P(Checkpoints, GoldenOf, kCheckpoints, name_of_case);
INSTANTIATE_TEST_SUITE_P(Checkpoints, GoldenOfInBf16, kCheckpoints, name_of_case);

}  // namespace
}  // namespace sluice
