// The demo model in BF16 against the reference: likelihood, logits and greedy texts.
#include <gtest/gtest.h>

#include "engine/demo_golden.h"

namespace sluice {
namespace {

class DemoInBf16 : public ::testing::Test {
 protected:
  Demo demo_{std::filesystem::path(SLUICE_SHARED_DIR) / "models/demo"};
};

TEST_F(DemoInBf16, LikelihoodIsWithinATenthOfAPercent) {
  const nlohmann::json golden = demo_golden().at("perplexity");
  const double want = golden.at("nll");
  EXPECT_NEAR(demo_.likelihood(golden.at("ids")), want, 0.001 * want);
}

TEST_F(DemoInBf16, GreedyTextsAndTopLogitsEqualTheReference) {
  int compared = 0;
  const auto golden = demo_golden();
  for (const auto& item : golden.at("generate")) {
    if (item.at("min_margin").get<double>() <= 1e-3) continue;
    SCOPED_TRACE(item.at("prompt").get<std::string>());
    ++compared;
    const std::vector<int32_t> prompt = item.at("ids"), want = item.at("greedy_ids");
    Session session(*demo_.runtime, {});
    const auto logits = session.prefill(prompt);
    for (size_t i = 0; i < item.at("top20_ids").size(); ++i) {
      EXPECT_NEAR(logits[item.at("top20_ids")[i].get<size_t>()], item.at("top20_logits")[i].get<double>(),
                  1e-3);
    }
    GenerateOptions options;
    options.max_tokens = static_cast<int64_t>(want.size());
    EXPECT_EQ(generate(session, prompt, options, nullptr).ids, want);
  }
  EXPECT_GE(compared, 5);
}

}  // namespace
}  // namespace sluice
