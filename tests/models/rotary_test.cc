// Rotary frequencies against the published formulas, value by value in double precision.
#include "models/rotary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "base/expect_error.h"

namespace sluice {
namespace {

using nlohmann::json;
using testing::expect_error;

constexpr double kTheta = 500000, kPi = 3.14159265358979323846;
constexpr int64_t kDim = 128;

Rotary read(const json& rope, json config = json::object(), const char* where = "rope_scaling") {
  config["rope_theta"] = kTheta;
  if (!rope.is_null()) config[where] = rope;
  return read_rotary(Config::parse(config.dump(), "config.json"), kDim, 131072, 10000);
}

double plain(int64_t i) { return std::pow(kTheta, -2.0 * static_cast<double>(i) / kDim); }

void expect_frequencies(const Rotary& rotary, const std::function<double(int64_t)>& want) {
  ASSERT_EQ(std::ssize(rotary.frequencies), kDim / 2);
  for (int64_t i = 0; i < kDim / 2; ++i) {
    EXPECT_NEAR(rotary.frequencies[static_cast<size_t>(i)] / want(i), 1, 2e-6) << "pair " << i;
  }
}

/// As the paper writes it: pairs before `low` are kept, those after `high` interpolated.
double yarn(int64_t i, double factor, double low, double high) {
  const double gamma = 1 - std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
  return (1 - gamma) * plain(i) / factor + gamma * plain(i);
}
double turning_pair(double turns, double positions) {
  return kDim * std::log(positions / (2 * kPi * turns)) / (2 * std::log(kTheta));
}

TEST(Rotary, DefaultFrequenciesFallGeometrically) {
  for (const json& rope : {json(), json{{"rope_type", "default"}}, json{{"type", "default"}}}) {
    const Rotary rotary = read(rope);
    expect_frequencies(rotary, plain);
    EXPECT_EQ(rotary.attention_factor, 1);
  }
}

TEST(Rotary, LinearDividesEveryFrequency) {
  for (const char* type : {"type", "rope_type"}) {
    const Rotary rotary = read({{type, "linear"}, {"factor", 8.0}});
    expect_frequencies(rotary, [](int64_t i) { return plain(i) / 8; });
    EXPECT_EQ(rotary.attention_factor, 1);
  }
}

TEST(Rotary, YarnKeepsFastPairsAndInterpolatesSlowOnes) {
  const Rotary rotary =
      read({{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 32768}});
  const double low = std::floor(turning_pair(32, 32768)), high = std::ceil(turning_pair(1, 32768));
  EXPECT_GT(low, 10);
  EXPECT_LT(high, kDim / 2);
  expect_frequencies(rotary, [&](int64_t i) { return yarn(i, 4, low, high); });
  EXPECT_NEAR(rotary.attention_factor, 0.1 * std::log(4.0) + 1, 1e-12);
}

TEST(Rotary, YarnTakesItsBoundsFromBetasUntruncatedIfAsked) {
  const Rotary rotary = read({{"rope_type", "yarn"},
                              {"factor", 16.0},
                              {"beta_fast", 20.0},
                              {"beta_slow", 2.0},
                              {"truncate", false},
                              {"original_max_position_embeddings", 4096}});
  const double low = turning_pair(20, 4096), high = turning_pair(2, 4096);
  expect_frequencies(rotary, [&](int64_t i) { return yarn(i, 16, low, high); });
}

TEST(Rotary, YarnTakesOriginalPositionsAndFactorFromTheModelWhereItSaysNone) {
  const Rotary outside = read({{"rope_type", "yarn"}}, {{"original_max_position_embeddings", 8192}});
  const double low = std::floor(turning_pair(32, 8192)), high = std::ceil(turning_pair(1, 8192));
  expect_frequencies(outside, [&](int64_t i) { return yarn(i, 131072.0 / 8192, low, high); });
  const Rotary whole = read({{"rope_type", "yarn"}, {"factor", 2.0}});
  const double first = std::floor(turning_pair(32, 131072)), last = std::ceil(turning_pair(1, 131072));
  expect_frequencies(whole, [&](int64_t i) { return yarn(i, 2, first, last); });
}

TEST(Rotary, YarnScalesAttentionAsItsFieldsSay) {
  const auto factor = [](json fields) {
    fields["rope_type"] = "yarn";
    fields["factor"] = 40.0;
    return read(fields).attention_factor;
  };
  EXPECT_EQ(factor({{"attention_factor", 0.75}, {"mscale", 2.0}, {"mscale_all_dim", 1.0}}), 0.75);
  EXPECT_NEAR(factor({{"mscale", 0.707}, {"mscale_all_dim", 1.0}}),
              (0.0707 * std::log(40.0) + 1) / (0.1 * std::log(40.0) + 1), 1e-12);
  EXPECT_EQ(factor({{"mscale", 1.0}, {"mscale_all_dim", 1.0}}), 1);
  EXPECT_NEAR(factor({{"mscale", 0.5}}), 0.1 * std::log(40.0) + 1, 1e-12);  // alone it says nothing
  EXPECT_EQ(read({{"rope_type", "yarn"}, {"factor", 1.0}}).attention_factor, 1);
}

TEST(Rotary, Llama3GoesByWavelength) {
  const Rotary rotary = read({{"rope_type", "llama3"},
                              {"factor", 8.0},
                              {"low_freq_factor", 1.0},
                              {"high_freq_factor", 4.0},
                              {"original_max_position_embeddings", 8192}});
  int64_t kept = 0, divided = 0, between = 0;
  expect_frequencies(rotary, [&](int64_t i) {
    const double wavelength = 2 * kPi / plain(i);
    if (wavelength < 8192.0 / 4) return ++kept, plain(i);
    if (wavelength > 8192.0 / 1) return ++divided, plain(i) / 8;
    ++between;
    const double smooth = (8192 / wavelength - 1.0) / (4.0 - 1.0);
    return (1 - smooth) * plain(i) / 8 + smooth * plain(i);
  });
  EXPECT_GT(kept, 5);
  EXPECT_GT(divided, 5);
  EXPECT_GT(between, 2);
  EXPECT_EQ(rotary.attention_factor, 1);
}

TEST(Rotary, ReadsTheNewSpellingWithThetaInside) {
  const json rope = {{"rope_type", "linear"}, {"factor", 2.0}, {"rope_theta", 100.0}};
  const Rotary rotary = read(rope, json::object(), "rope_parameters");
  expect_frequencies(rotary,
                     [](int64_t i) { return std::pow(100.0, -2.0 * static_cast<double>(i) / kDim) / 2; });
}

TEST(Rotary, RefusesWhatItDoesNotKnowOrCannotBe) {
  for (const char* type : {"dynamic", "longrope", "su", "spiral"}) {
    expect_error(ErrorCode::kUnsupported,
                 {"config.json", "rope type \"" + std::string(type) + "\"", "default, linear, yarn, llama3"},
                 [&] {
                   read({{"rope_type", type}, {"factor", 2.0}});
                 });
  }
  expect_error(ErrorCode::kUnsupported, {"partial_rotary_factor 0.5"}, [] {
    read({{"rope_type", "default"}, {"partial_rotary_factor", 0.5}});
  });
  for (const char* type : {"linear", "llama3"}) {
    expect_error(ErrorCode::kBadFile, {"config.json", "rope_scaling"}, [&] { read({{"rope_type", type}}); });
  }
  expect_error(ErrorCode::kBadFile, {"rope_scaling.factor", "outside"}, [] {
    read({{"rope_type", "linear"}, {"factor", 0.0}});
  });
  expect_error(ErrorCode::kBadFile, {"high_freq_factor", "more than low_freq_factor"}, [] {
    read({{"rope_type", "llama3"}, {"factor", 8.0}, {"low_freq_factor", 4.0}, {"high_freq_factor", 4.0}});
  });
  expect_error(ErrorCode::kBadFile, {"rope_theta", "more than 1"}, [] {
    read({{"rope_type", "yarn"}, {"factor", 2.0}, {"rope_theta", 1.0}});
  });
}

}  // namespace
}  // namespace sluice
