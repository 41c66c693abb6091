// A logit bias beyond what a float holds made every probability NaN, and the last id was drawn.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/expect_error.h"
#include "engine/sampler.h"

namespace sluice::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLargest = std::numeric_limits<float>::max();

int32_t draw(const SamplingParams& params, const std::vector<float>& logits) {
  const std::vector<int32_t> prompt = {0};
  return Sampler(params, static_cast<int64_t>(logits.size()), prompt).sample(logits).id;
}

TEST(LargeSettings, ABiasThatAFloatCannotHoldIsRefused) {
  for (const double bias : {kInfinity, 1e39, 1e308, -1e39, std::nan("")}) {
    SamplingParams params;
    params.logit_bias[3] = bias;
    expect_error(ErrorCode::kInvalidArgument, {"logit_bias of token 3", "-3.4e38 ... 3.4e38"},
                 [&] { check(params, 10); });
  }
  SamplingParams params;
  params.logit_bias = {{0, kLargest}, {1, -kLargest}, {2, -kInfinity}};
  check(params, 10);
}

TEST(LargeSettings, TheLargestBiasForcesItsTokenEvenWhereTheSumOverflows) {
  SamplingParams params;
  params.temperature = 1;
  params.logit_bias = {{1, kLargest}};
  EXPECT_EQ(draw(params, {0, 1, 2}), 1);
  EXPECT_EQ(draw(params, {0, static_cast<float>(kLargest), 2}), 1);
  params.logit_bias = {{0, kLargest}};
  params.repetition_penalty = 1e-6;  // divides the score of token 0, which is in the prompt
  EXPECT_EQ(draw(params, {0, 1, 2}), 0);
}

TEST(LargeSettings, ExtremeTemperaturesAndThresholdsChooseTheLikeliest) {
  for (const double temperature : {5e-324, 1e-300, 1e-10}) {
    SamplingParams params;
    params.temperature = temperature;
    EXPECT_EQ(draw(params, {1, 3, 2}), 1) << temperature;
  }
  SamplingParams params;
  params.temperature = 1e6;
  params.top_p = 5e-324;
  EXPECT_EQ(draw(params, {1, 3, 2}), 1);
  params.top_p = 1;
  params.min_p = 1;
  EXPECT_EQ(draw(params, {1, 3, 2}), 1);
}

TEST(LargeSettings, ARepetitionPenaltyThatRoundsToZeroIsRefused) {
  SamplingParams params;
  params.repetition_penalty = 1e-300;
  expect_error(ErrorCode::kInvalidArgument, {"repetition_penalty: 1e-300 is outside 1e-6"},
               [&] { check(params, 10); });
}

TEST(LargeSettings, ForbiddingEveryTokenIsAnError) {
  for (const double temperature : {0.0, 1.0}) {
    SamplingParams params;
    params.temperature = temperature;
    params.logit_bias = {{0, -kInfinity}, {1, -kInfinity}};
    expect_error(ErrorCode::kInvalidArgument, {"no token"}, [&] { draw(params, {1, 2}); });
  }
}

TEST(LargeSettings, LogitsThatGiveNoProbabilitiesAreAnError) {
  const float infinity = std::numeric_limits<float>::infinity();
  SamplingParams params;
  params.temperature = 1;
  expect_error(ErrorCode::kInvalidArgument, {"+infinity", "token 1"}, [&] { draw(params, {1, infinity}); });
  expect_error(ErrorCode::kInvalidArgument, {"every token"}, [&] { draw(params, {-infinity, -infinity}); });
}

}  // namespace
}  // namespace sluice::testing
