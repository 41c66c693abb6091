// Tiny checkpoints that are too large for the repository against the reference's logits, experts and greedy
// text, for every way of cutting the input and every number of slots.
#include "engine/golden_checks.h"

namespace sluice {
namespace {

std::filesystem::path folder_of(const std::string& name) {
  return std::filesystem::path(SLUICE_SHARED_DIR) / "goldens" / name;
}

class SharedGoldenOf : public ::testing::TestWithParam<const char*> {
 protected:
  SharedGoldenOf() : golden_(folder_of(GetParam())) {}
  testing::GoldenModel golden_;
};

TEST_P(SharedGoldenOf, LogitsAndExpertsMatchTheReference) { golden_.expect_logits_and_experts(1e-3); }
TEST_P(SharedGoldenOf, EveryCutGivesTheSameBits) { golden_.expect_same_bits_for_every_cut(); }
TEST_P(SharedGoldenOf, GreedyTextEqualsTheReference) { golden_.expect_greedy_text(); }
TEST_P(SharedGoldenOf, SlotsGiveTheSameBits) { golden_.expect_same_bits_with_slots(); }

class SharedGoldenOfInBf16 : public SharedGoldenOf {
 protected:
  testing::GoldenModel in_bf16_{folder_of(GetParam()), {}, nullptr, computing_in(Compute::kBf16)};
};

TEST_P(SharedGoldenOfInBf16, LogitsAreCloseToTheReferenceAndClearChoicesTheSame) {
  in_bf16_.expect_logits_and_choices(golden_, 3e-2, 0.1);
}
TEST_P(SharedGoldenOfInBf16, EveryCutGivesTheSameBits) { in_bf16_.expect_same_bits_for_every_cut(); }
TEST_P(SharedGoldenOfInBf16, SlotsGiveTheSameBits) { in_bf16_.expect_same_bits_with_slots(); }

const auto kCheckpoints =
    ::testing::Values("qwen3_moe_fp8", "qwen3_moe_nvfp4_compressed_tensors", "qwen3_moe_mixed_formats");
std::string name_of_case(const ::testing::TestParamInfo<const char*>& test) { return test.param; }
INSTANTIATE_TEST_SUITE_P(Checkpoints, SharedGoldenOf, kCheckpoints, name_of_case);
INSTANTIATE_TEST_SUITE_P(Checkpoints, SharedGoldenOfInBf16, kCheckpoints, name_of_case);

}  // namespace
}  // namespace sluice
