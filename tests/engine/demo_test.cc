// The demo model of this repository (experts in NVFP4) against the reference in BF16.
#include <gtest/gtest.h>

#include "engine/demo_golden.h"

namespace sluice {
namespace {

TEST(Demo, LikelihoodInNvfp4IsWithinThreePercentOfBf16) {
  Demo demo(std::filesystem::path(SLUICE_SOURCE_DIR) / "models/demo");
  const nlohmann::json golden = demo_golden().at("perplexity");
  const double want = golden.at("nll");
  EXPECT_NEAR(demo.likelihood(golden.at("ids")), want, 0.03 * want);
}

}  // namespace
}  // namespace sluice
