// NVFP4 quantisation with a search over each group's scale.
#include "checkpoint/nvfp4_quantize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/scalar.h"
#include "checkpoint/weight_format.h"

namespace sluice::nvfp4 {
namespace {

constexpr float kMaxE2m1 = 6.0f;
constexpr uint8_t kMaxScaleCode = 0x7e;  // 448
// Steps of the scale's code that are tried around amax / 6. Eight steps are a factor of two: five down let
// the largest value clip at about 2/3, seven up let it land on 4 or 3, where e2m1 is denser.
constexpr int kStepsDown = 5, kStepsUp = 7;

using Group = std::span<const float, kNvfp4Group>;

float largest_magnitude(std::span<const float> values) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::fabs(value));
  return largest;
}

// What e2m1 makes of a magnitude, as f32_to_e2m1 rounds; written so that compilers make vectors of it.
float nearest_e2m1(float magnitude) {
  constexpr float kRound = 0x1.8p23f;  // adding it rounds to whole numbers, ties to even
  const float step = magnitude < 2.0f ? 0.5f : magnitude < 4.0f ? 1.0f : 2.0f;
  const float per_step = magnitude < 2.0f ? 2.0f : magnitude < 4.0f ? 1.0f : 0.5f;
  const float clipped = magnitude < kMaxE2m1 ? magnitude : kMaxE2m1;
  return ((clipped * per_step + kRound) - kRound) * step;
}

float squared_error(Group values, float scale) {
  const float inverse = 1.0f / scale;
  std::array<float, kNvfp4Group> squares;
  for (size_t i = 0; i < squares.size(); ++i) {
    const float magnitude = std::fabs(values[i]);
    const float difference = magnitude - nearest_e2m1(magnitude * inverse) * scale;
    squares[i] = difference * difference;
  }
  for (size_t half = squares.size() / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) squares[i] += squares[i + half];
  }
  return squares[0];
}

// The e4m3 code with the least squared error; ties go to the one tried first, the nearest to amax / 6.
uint8_t best_scale(Group values, float global) {
  const float amax = largest_magnitude(values);
  if (amax == 0) return 0;
  const int nearest = std::max<int>(f32_to_e4m3(amax / kMaxE2m1 / global), 1);
  float least = std::numeric_limits<float>::infinity();
  int best = nearest;
  const auto attempt = [&](int code) {
    if (code < 1 || code > kMaxScaleCode) return;
    const float error = squared_error(values, e4m3_to_f32(static_cast<uint8_t>(code)) * global);
    if (error < least) least = error, best = code;
  };
  attempt(nearest);
  for (int step = 1; step <= kStepsUp; ++step) attempt(nearest + step);
  for (int step = 1; step <= kStepsDown; ++step) attempt(nearest - step);
  return static_cast<uint8_t>(best);
}

void encode(Group values, float scale, std::span<uint8_t> codes) {
  const float inverse = scale == 0 ? 0.0f : 1.0f / scale;
  for (size_t i = 0; i < codes.size(); ++i) {
    const uint8_t even = f32_to_e2m1(values[2 * i] * inverse), odd = f32_to_e2m1(values[2 * i + 1] * inverse);
    codes[i] = static_cast<uint8_t>(even | (odd << 4));
  }
}

}  // namespace

QuantizedMatrix quantize(std::span<const float> values, int64_t n, int64_t k, ThreadPool& pool) {
  SLUICE_CHECK(n >= 0 && k % kNvfp4Group == 0 && values.size() == static_cast<size_t>(n * k));
  QuantizedMatrix result;
  result.codes.resize(values.size() / 2);
  result.scales.resize(values.size() / kNvfp4Group);
  const float amax = largest_magnitude(values);
  // An all-zero matrix has zero scales; its global stays 1, which readers can invert. So it does for values
  // so small that the quotient would vanish: they become zeros.
  const float global = amax / (kMaxE2m1 * e4m3_to_f32(kMaxScaleCode));
  if (global < std::numeric_limits<float>::min()) return result;
  result.global = global;
  pool.parallel_for(static_cast<int64_t>(result.scales.size()), 256, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto group = static_cast<size_t>(i);
      const Group input(values.data() + group * kNvfp4Group, static_cast<size_t>(kNvfp4Group));
      const uint8_t code = best_scale(input, global);
      result.scales[group] = code;
      encode(input, e4m3_to_f32(code) * global,
             std::span(result.codes).subspan(group * (kNvfp4Group / 2), kNvfp4Group / 2));
    }
  });
  return result;
}

}  // namespace sluice::nvfp4
