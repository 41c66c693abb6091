// Router scores that nobody's weights gave: for measurements on random weights, which do not route like
// trained ones.
#pragma once

#include "device/stream.h"

namespace sluice {

/// How strongly scores follow what they have in common; each is the standard deviation of a part of the
/// score, beside noise of the token's own (Gumbel, so that the k highest are k draws without replacement).
struct RouteMix {
  float popularity = 0;  // of the expert, always
  float topic = 0;       // of the expert in a stretch of kTopicTokens
  float moment = 0;      // of the expert in a stretch of kMomentTokens
};
inline constexpr int32_t kTopicTokens = 128, kMomentTokens = 4;

/// Scores as a function of (seed, topic, layer, position, token, expert), without state.
struct RouteGenerator {
  uint64_t seed = 1;
  /// Prompts touch 39 / 64 / 80 % of 256 experts in 67 / 328 / 1022 tokens, top 8 (published: 39 / 63 / 78
  /// %).
  RouteMix prompt = {2.3f, 0.7f, 1.0f};
  /// Decode steps of 256 experts, top 8, find 53 % in LRU slots for 24 % of a layer, and repeat a quarter of
  /// the last token's experts (published: 51 to 62 %, and 35 %).
  RouteMix decode = {0.8f, 0.6f, 2.0f};
  /// Deviation of what a forecast gets wrong: at 0.55 it names 0.82 of the eight (published: 0.74 to 0.89).
  float forecast_noise = 0.55f;
  const int32_t* topic = nullptr;  // [1] in device memory: another value, other topics
};

/// Batches of up to so many rows are decode steps.
inline constexpr int64_t kDecodeRows = 8;

/// logits [rows, experts] of MoE layer `layer`, for tokens `ids` [rows] at `positions` [rows]. With
/// `forecast` those that the layer before it would have guessed.
void generate_router_logits(Stream& stream, const RouteGenerator& generator, int64_t layer,
                            const int32_t* ids, const int32_t* positions, int64_t rows, int64_t experts,
                            bool forecast, float* logits);

}  // namespace sluice
