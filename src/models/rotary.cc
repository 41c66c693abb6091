// The published formulas, in the double precision that their parameters are given in.
#include "models/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "base/error.h"

namespace sluice {
namespace {

constexpr double kHigh = 1e12;

/// theta^(-2i / dim) in f32, as the families' reference computes them.
std::vector<float> plain_frequencies(double theta, int64_t dim) {
  std::vector<float> frequencies(static_cast<size_t>(dim / 2));
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(dim);
    frequencies[i] = 1.0f / std::pow(static_cast<float>(theta), exponent);
  }
  return frequencies;
}

double read_factor(const Config& rope) { return rope.number({"factor"}, 1.0, 1e6); }

/// Positions that the model was made for before they were stretched.
double original_positions(const Config& config, const Config& rope, int64_t max_positions) {
  constexpr int64_t kMost = int64_t{1} << 31;
  const int64_t outside = config.integer_or({"original_max_position_embeddings"}, 1, kMost, max_positions);
  return static_cast<double>(rope.integer_or({"original_max_position_embeddings"}, 1, kMost, outside));
}

/// 1 below `from`, 0 above `to`, a line between; the other way round where from > to.
double ramp(double at, double from, double to) { return std::clamp((to - at) / (to - from), 0.0, 1.0); }

/// Each frequency as a mix: `keep(i, frequency)` of itself, the rest of it divided by `factor`.
template <class Keep>
void stretch(std::vector<float>& frequencies, double factor, Keep keep) {
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const auto frequency = static_cast<double>(frequencies[i]);
    const double share = keep(static_cast<double>(i), frequency);
    frequencies[i] = static_cast<float>(frequency * share + frequency / factor * (1 - share));
  }
}

double magnitude(double factor, double scale) { return factor <= 1 ? 1 : 0.1 * scale * std::log(factor) + 1; }

double yarn_attention_factor(const Config& rope, double factor) {
  if (rope.has({"attention_factor"})) return rope.number({"attention_factor"}, 1e-6, 1e6);
  const double scale = rope.number_or({"mscale"}, 0, 1e6, 0);
  const double all = rope.number_or({"mscale_all_dim"}, 0, 1e6, 0);
  return scale > 0 && all > 0 ? magnitude(factor, scale) / magnitude(factor, all) : magnitude(factor, 1);
}

void apply_yarn(const Config& config, const Config& rope, double theta, int64_t max_positions,
                Rotary& rotary) {
  const double positions = original_positions(config, rope, max_positions);
  const double factor = rope.has({"factor"}) ? read_factor(rope)
                                             : std::max(1.0, static_cast<double>(max_positions) / positions);
  const auto dim = static_cast<double>(2 * rotary.frequencies.size());
  // The pair that turns so often within the original positions.
  const auto pair_of = [&](double turns) {
    return dim * std::log(positions / (turns * 2 * std::numbers::pi)) / (2 * std::log(theta));
  };
  double low = pair_of(rope.number_or({"beta_fast"}, 1e-6, 1e6, 32));
  double high = pair_of(rope.number_or({"beta_slow"}, 1e-6, 1e6, 1));
  if (rope.boolean_or({"truncate"}, true)) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1);
  if (high == low) high += 0.001;
  stretch(rotary.frequencies, factor, [&](double i, double) { return ramp(i, low, high); });
  rotary.attention_factor = yarn_attention_factor(rope, factor);
}

void apply_llama3(const Config& config, const Config& rope, int64_t max_positions, Rotary& rotary) {
  const double positions = original_positions(config, rope, max_positions);
  const double low = rope.number({"low_freq_factor"}, 1e-6, 1e6);
  const double high = rope.number({"high_freq_factor"}, 1e-6, 1e6);
  if (high <= low) {
    throw Error(ErrorCode::kBadFile, config.file() + ": rope type \"llama3\": high_freq_factor " +
                                         std::to_string(high) + " must be more than low_freq_factor " +
                                         std::to_string(low));
  }
  stretch(rotary.frequencies, read_factor(rope), [&](double, double frequency) {
    const double turns = positions * frequency / (2 * std::numbers::pi);
    return std::clamp((turns - low) / (high - low), 0.0, 1.0);
  });
}

}  // namespace

Rotary read_rotary(const Config& config, int64_t dim, int64_t max_positions, double default_theta) {
  const Config rope = config.object({"rope_parameters", "rope_scaling"});
  for (const Config& place : {config, rope}) {
    const double part = place.number_or({"partial_rotary_factor"}, 0, 1, 1);
    if (part == 1) continue;
    throw Error(ErrorCode::kUnsupported,
                config.file() + ": partial_rotary_factor " + std::to_string(part) + "; the known one is: 1");
  }
  const double theta = rope.has({"rope_theta"}) ? rope.number({"rope_theta"}, 1.0, kHigh)
                                                : config.number_or({"rope_theta"}, 1.0, kHigh, default_theta);
  Rotary rotary{plain_frequencies(theta, dim)};
  const std::string type = rope.string_or({"rope_type", "type"}, "default");
  if (type == "linear") {
    stretch(rotary.frequencies, read_factor(rope), [](double, double) { return 0.0; });
  } else if (type == "yarn") {
    if (theta <= 1) {
      throw Error(ErrorCode::kBadFile,
                  config.file() + ": rope type \"yarn\": rope_theta must be more than 1");
    }
    apply_yarn(config, rope, theta, max_positions, rotary);
  } else if (type == "llama3") {
    apply_llama3(config, rope, max_positions, rotary);
  } else if (type != "default") {
    throw Error(ErrorCode::kUnsupported, config.file() + ": rope type \"" + type +
                                             "\"; the known ones are: default, linear, yarn, llama3");
  }
  return rotary;
}

}  // namespace sluice
