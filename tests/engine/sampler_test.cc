// The sampler: each setting alone, its limits, and its distribution.
#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/expect_error.h"
#include "base/random.h"

namespace sluice {
namespace {

using sluice::testing::expect_error;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

int32_t once(const SamplingParams& params, const std::vector<float>& logits,
             std::vector<int32_t> prompt = {}) {
  return Sampler(params, static_cast<int64_t>(logits.size()), prompt).sample(logits).id;
}

/// Which ids come up in 2000 draws.
std::vector<int> counts(SamplingParams params, const std::vector<float>& logits) {
  std::vector<int> result(logits.size());
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    params.seed = seed;
    ++result[static_cast<size_t>(once(params, logits))];
  }
  return result;
}

TEST(Philox, MatchesThePublishedVectors) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox(0, {0, 0, 0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~uint64_t{0}, {~0u, ~0u, ~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Sampler, GreedyGivesTiesToTheLowerId) {
  EXPECT_EQ(once({}, {1, 3, 3, 2}), 1);
  SamplingParams params;
  params.temperature = 1;
  params.top_p = 0;  // greedy too
  EXPECT_EQ(once(params, {1, 3, 3, 2}), 1);
  params.top_p = 1;
  params.top_k = 1;
  EXPECT_EQ(once(params, {1, 3, 3, 2}), 1);
}

TEST(Sampler, TopKKeepsTheLowerIdOfATie) {
  SamplingParams params;
  params.temperature = 1;
  params.top_k = 2;
  const auto n = counts(params, {0, 2, 2, 2});
  EXPECT_EQ(n[0], 0);
  EXPECT_GT(n[1], 0);
  EXPECT_GT(n[2], 0);
  EXPECT_EQ(n[3], 0);
}

TEST(Sampler, TopPKeepsTheShortestHeadThatReachesIt) {
  SamplingParams params;
  params.temperature = 1;
  const std::vector<float> logits = {std::log(0.1f), std::log(0.5f), std::log(0.3f), std::log(0.1f)};
  params.top_p = 0.75;  // 0.5 alone does not reach it, 0.5 + 0.3 does
  const auto n = counts(params, logits);
  EXPECT_EQ(n[0] + n[3], 0);
  EXPECT_NEAR(n[1] / 2000.0, 0.625, 0.05);  // 5 standard deviations
  params.top_p = 0.45;
  EXPECT_EQ(counts(params, logits)[1], 2000);
}

TEST(Sampler, MinPIsRelativeToTheHighest) {
  SamplingParams params;
  params.temperature = 1;
  params.min_p = 0.5;
  const auto n = counts(params, {std::log(0.4f), std::log(0.35f), std::log(0.15f), std::log(0.1f)});
  EXPECT_GT(n[1], 0);
  EXPECT_EQ(n[2] + n[3], 0);
}

TEST(Sampler, DrawsFollowTheSoftmaxAtTheTemperature) {
  SamplingParams params;
  for (const double temperature : {0.5, 1.0, 2.0}) {
    params.temperature = temperature;
    const std::vector<float> logits = {0, 1, 2, -1};
    double total = 0;
    for (const float logit : logits) total += std::exp(static_cast<double>(logit) / temperature);
    const auto n = counts(params, logits);
    for (size_t i = 0; i < logits.size(); ++i) {
      EXPECT_NEAR(n[i] / 2000.0, std::exp(static_cast<double>(logits[i]) / temperature) / total, 0.056) << i;
    }
  }
}

TEST(Sampler, DrawsOfOneAnswerFollowTheSoftmax) {
  SamplingParams params;
  params.temperature = 1;
  params.seed = 20261129;
  const std::vector<float> logits = {0, 1, 2, -1, 0.5f, 1.5f, -0.5f, 2.5f};
  constexpr int kDraws = 2000;
  double total = 0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit));
  std::vector<int> n(logits.size());
  Sampler sampler(params, static_cast<int64_t>(logits.size()), {});
  for (int i = 0; i < kDraws; ++i) ++n[static_cast<size_t>(sampler.sample(logits).id)];
  double chi_square = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double expected = kDraws * std::exp(static_cast<double>(logits[i])) / total;
    chi_square += (n[i] - expected) * (n[i] - expected) / expected;
  }
  EXPECT_LT(chi_square, 42) << "seed " << params.seed
                            << "; 7 degrees of freedom: a fair draw passes 42 less than once in a million";
}

TEST(Sampler, PenaltiesActOnTheirOwnTokens) {
  SamplingParams params;
  params.repetition_penalty = 2;  // prompt and answer; halves what is positive, doubles what is negative
  EXPECT_EQ(once(params, {3, 2}, {0}), 1);
  EXPECT_EQ(once(params, {-1, -1.5f}, {0}), 1);
  params = {};
  params.presence_penalty = 1;  // the answer alone
  EXPECT_EQ(once(params, {3, 2.5f}, {0}), 0);
  Sampler presence(params, 2, {});
  const std::vector<float> logits = {3, 2.5f};
  EXPECT_EQ(presence.sample(logits).id, 0);
  EXPECT_EQ(presence.sample(logits).id, 1);
  EXPECT_EQ(presence.sample(logits).id, 0) << "presence counts a token once";
  params = {};
  params.frequency_penalty = 0.3;
  Sampler frequency(params, 2, {});
  std::vector<int32_t> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(frequency.sample(logits).id);
  EXPECT_EQ(ids, (std::vector<int32_t>{0, 0, 1, 0, 1}));
}

TEST(Sampler, LogitBiasForbidsAndForces) {
  SamplingParams params;
  params.logit_bias = {{1, -kInfinity}};
  EXPECT_EQ(once(params, {1, 3, 2}), 2);
  params.logit_bias = {{0, 100}};
  EXPECT_EQ(once(params, {1, 3, 2}), 0);
  params.logit_bias = {{1, -kInfinity}};
  params.temperature = 1;
  EXPECT_EQ(counts(params, {1, 3, 2})[1], 0);
}

TEST(Sampler, RowsThatOnlyPadTheVocabularyAreNeverChosen) {
  SamplingParams params;
  params.vocab_limit = 2;
  EXPECT_EQ(once(params, {1, 2, 9}), 1);
  params.temperature = 100;
  EXPECT_EQ(counts(params, {1, 2, 9})[2], 0);
}

TEST(Sampler, LogprobsAreThoseOfTheModelHighestFirst) {
  SamplingParams params;
  params.logprobs = 2;
  params.logit_bias = {{0, 100}};
  const SampledToken token = Sampler(params, 3, {}).sample(std::vector<float>{0, 2, 1});
  const double total = std::log(1 + std::exp(2.0) + std::exp(1.0));
  EXPECT_EQ(token.id, 0);
  EXPECT_NEAR(token.logprob, -total, 1e-9);
  ASSERT_EQ(token.top_logprobs.size(), 2u);
  EXPECT_EQ(token.top_logprobs[0].first, 1);
  EXPECT_NEAR(token.top_logprobs[0].second, 2 - total, 1e-9);
  EXPECT_EQ(token.top_logprobs[1].first, 2);
}

TEST(Sampler, LogprobsLeaveOutRowsThatOnlyPadTheVocabulary) {
  SamplingParams params;
  params.vocab_limit = 2;
  params.logprobs = 3;
  const SampledToken token = Sampler(params, 3, {}).sample(std::vector<float>{1, 2, 9});
  ASSERT_EQ(token.top_logprobs.size(), 2u);
  EXPECT_EQ(token.top_logprobs[0].first, 1);
  EXPECT_EQ(token.top_logprobs[1].first, 0);
}

TEST(Sampler, ANaNIsAnErrorThatNamesTheToken) {
  expect_error(ErrorCode::kInvalidArgument, {"NaN", "token 2"}, [] { once({}, {1, 2, NAN}); });
}

TEST(Sampler, MinusInfinityIsALogitLikeAnyOther) {
  SamplingParams params;
  params.temperature = 1;
  EXPECT_EQ(counts(params, {-kInfinity, 0, -kInfinity})[1], 2000);
}

TEST(Sampler, RefusesSettingsOutsideTheirRangeByName) {
  const auto refused = [](const char* name, auto set) {
    SamplingParams params;
    set(params);
    expect_error(ErrorCode::kInvalidArgument, {name}, [&] { check(params, 10); });
  };
  refused("temperature", [](auto& p) { p.temperature = -1; });
  refused("temperature", [](auto& p) { p.temperature = NAN; });
  refused("temperature", [](auto& p) { p.temperature = INFINITY; });
  refused("top_k", [](auto& p) { p.top_k = -1; });
  refused("top_p", [](auto& p) { p.top_p = 1.5; });
  refused("min_p", [](auto& p) { p.min_p = -0.1; });
  refused("repetition_penalty", [](auto& p) { p.repetition_penalty = 0; });
  refused("presence_penalty", [](auto& p) { p.presence_penalty = NAN; });
  refused("frequency_penalty", [](auto& p) { p.frequency_penalty = NAN; });
  refused("logit_bias", [](auto& p) { p.logit_bias[10] = 1; });
  refused("logprobs", [](auto& p) { p.logprobs = 11; });
}

TEST(SamplingDefaults, ComeFromGenerationConfig) {
  const auto read = [](const char* json) {
    return sampling_defaults(Config::parse(json, "generation_config.json"));
  };
  EXPECT_TRUE(read("{}").greedy());
  EXPECT_TRUE(read(R"({"temperature": 0.6})").greedy()) << "without do_sample the reference is greedy";
  const SamplingParams p = read(R"({"do_sample": true, "temperature": 0.7, "top_p": 0.8, "top_k": 20,
                                    "min_p": 0.1, "repetition_penalty": 1.05})");
  EXPECT_EQ(p.temperature, 0.7);
  EXPECT_EQ(p.top_p, 0.8);
  EXPECT_EQ(p.top_k, 20);
  EXPECT_EQ(p.min_p, 0.1);
  EXPECT_EQ(p.repetition_penalty, 1.05);
  EXPECT_EQ(read(R"({"do_sample": true})").top_k, 50) << "the reference's own default";
}

}  // namespace
}  // namespace sluice
