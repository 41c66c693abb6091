// The demo model in BF16 against the reference: likelihood, logits and greedy texts.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iostream>

#include "engine/demo_golden.h"

namespace sluice {
namespace {

class DemoOfBf16Weights : public ::testing::Test {
 protected:
  static std::filesystem::path folder() { return std::filesystem::path(SLUICE_SHARED_DIR) / "models/demo"; }
  Demo demo_{folder(), Compute::kF32};
};

TEST_F(DemoOfBf16Weights, LikelihoodIsWithinATenthOfAPercentInF32AndAHalfInBf16) {
  const nlohmann::json golden = demo_golden().at("perplexity");
  const double want = golden.at("nll");
  EXPECT_NEAR(demo_.likelihood(golden.at("ids")), want, 0.001 * want);
  EXPECT_NEAR(Demo(folder(), Compute::kBf16).likelihood(golden.at("ids")), want, 0.005 * want);
}

TEST_F(DemoOfBf16Weights, GreedyTextsAndTopLogitsEqualTheReference) {
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

// Along the reference's texts: how far bf16 moves the logits, and which choices that changes.
TEST_F(DemoOfBf16Weights, InBf16LogitsAreCloseAndNearlyAllClearChoicesTheSame) {
  Demo in_bf16(folder(), Compute::kBf16);
  const auto vocab = demo_.model->info().vocab_size;
  int64_t tokens = 0, clear = 0, others = 0;
  double squares = 0, errors = 0, widest = 0;
  const auto golden = demo_golden();
  for (const auto& item : golden.at("generate")) {
    std::vector<int32_t> ids = item.at("ids");
    const std::vector<int32_t> answer = item.at("greedy_ids");
    ids.insert(ids.end(), answer.begin(), answer.end());
    const std::vector<float> want = demo_.logits(ids), got = in_bf16.logits(ids);
    for (int64_t at = 0; at < std::ssize(want); at += vocab) {
      const std::span<const float> w(want.data() + at, static_cast<size_t>(vocab)),
          g(got.data() + at, w.size());
      for (size_t i = 0; i < w.size(); ++i) {
        squares += static_cast<double>(w[i]) * static_cast<double>(w[i]);
        errors += std::pow(static_cast<double>(g[i]) - static_cast<double>(w[i]), 2);
      }
      const auto best = std::max_element(w.begin(), w.end()) - w.begin();
      const auto chosen = std::max_element(g.begin(), g.end()) - g.begin();
      std::vector<float> sorted(w.begin(), w.end());
      std::partial_sort(sorted.begin(), sorted.begin() + 2, sorted.end(), std::greater<>());
      const double margin = static_cast<double>(sorted[0]) - static_cast<double>(sorted[1]);
      ++tokens;
      if (margin > 0.1) ++clear;
      if (margin > 0.1 && best != chosen) {
        ++others;
        widest = std::max(widest, margin);
      }
    }
  }
  std::cout << "logits: rms " << std::sqrt(squares / static_cast<double>(tokens * vocab)) << ", error "
            << std::sqrt(errors / static_cast<double>(tokens * vocab)) << "; of " << tokens << " tokens "
            << clear << " are clear choices, of which bf16 makes " << others << " others, up to a margin of "
            << widest << "\n";
  EXPECT_LE(std::sqrt(errors / squares), 3e-2);
  // Those that differ come behind tokens whose near scores chose other experts.
  EXPECT_LE(static_cast<double>(others), 0.02 * static_cast<double>(clear));
}

}  // namespace
}  // namespace sluice
