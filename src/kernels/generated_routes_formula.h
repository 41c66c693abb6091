// The score of one expert for one token, on the host and on the device.
#pragma once

#include <cmath>

#include "base/random.h"
#include "kernels/generated_routes.h"

#ifdef __CUDACC__
#define SLUICE_BOTH __host__ __device__
#else
#define SLUICE_BOTH
#endif

namespace sluice {

/// Where the parts of scores take their random words from.
enum class RoutePart : uint32_t { kPopularity, kTopic, kMoment, kToken, kForecast };

struct RouteWords {
  float a, b;  // uniform in (0, 1)
};

SLUICE_BOTH inline RouteWords route_words(uint64_t seed, RoutePart part, uint32_t layer, uint32_t expert,
                                          uint32_t when) {
  const auto words = philox(seed, {expert, when, layer, static_cast<uint32_t>(part)});
  constexpr float kScale = 1.0f / 16777216.0f;
  return {(static_cast<float>(words[0] >> 8) + 0.5f) * kScale,
          (static_cast<float>(words[1] >> 8) + 0.5f) * kScale};
}

/// Standard normal: Box and Muller, 1958.
SLUICE_BOTH inline float normal(RouteWords w) { return sqrtf(-2.0f * logf(w.a)) * cosf(6.2831853f * w.b); }

SLUICE_BOTH inline float route_score(const RouteGenerator& g, const RouteMix& mix, int32_t topic,
                                     uint32_t layer, int32_t token, int32_t position, uint32_t expert,
                                     bool forecast) {
  const auto at = static_cast<uint32_t>(position);
  const uint32_t stretch = static_cast<uint32_t>(topic) * 65536u;
  const RouteWords own = route_words(g.seed + static_cast<uint32_t>(token), RoutePart::kToken, layer, expert,
                                     at + stretch * 64u);
  float score = -logf(-logf(own.a));
  score += mix.popularity * normal(route_words(g.seed, RoutePart::kPopularity, layer, expert, 0));
  score +=
      mix.topic * normal(route_words(g.seed, RoutePart::kTopic, layer, expert, at / kTopicTokens + stretch));
  score += mix.moment *
           normal(route_words(g.seed, RoutePart::kMoment, layer, expert, at / kMomentTokens + stretch));
  if (forecast) {
    score += g.forecast_noise *
             normal(route_words(g.seed, RoutePart::kForecast, layer, expert, at + stretch * 64u));
  }
  return score;
}

}  // namespace sluice
