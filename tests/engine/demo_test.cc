// The demo model of this repository (experts in NVFP4) against the reference in BF16.
#include <gtest/gtest.h>

#include "engine/demo_golden.h"

namespace sluice {
namespace {

class DemoIn : public ::testing::TestWithParam<Compute> {};

TEST_P(DemoIn, LikelihoodInNvfp4IsWithinThreePercentOfBf16Weights) {
  Demo demo(std::filesystem::path(SLUICE_SOURCE_DIR) / "models/demo", GetParam());
  const nlohmann::json golden = demo_golden().at("perplexity");
  const double want = golden.at("nll");
  EXPECT_NEAR(demo.likelihood(golden.at("ids")), want, 0.03 * want);
}

INSTANTIATE_TEST_SUITE_P(Computes, DemoIn, ::testing::Values(Compute::kF32, Compute::kBf16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace sluice
