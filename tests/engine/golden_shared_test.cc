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

INSTANTIATE_TEST_SUITE_P(Checkpoints, SharedGoldenOf,
                         ::testing::Values("qwen3_moe_fp8", "qwen3_moe_nvfp4_compressed_tensors",
                                           "qwen3_moe_mixed_formats"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace sluice
