// Replays a trace over a pool of slots: how often each eviction policy finds an expert resident.
//
// The pool is the engine's: one for all layers, filled on demand. A *call* is one layer of one step. It needs
// all its distinct experts resident at once, so none of them is anybody's victim while it runs. Misses are
// placed in ascending expert id: into the lowest empty slot, else into the victim's. A call that needs more
// experts than there are slots is cut into runs of rows, as long as they fit.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "experts/trace.h"

namespace sluice {

/// Who is evicted. In all of them a tie goes to the lower last use (call), then to the lower slot.
enum class ReplayPolicy {
  /// The lowest last use, as the engine's `lru`.
  kLru,
  /// The lowest use count, which halves every lfu_half_life_tokens and outlives eviction: one use counts
  /// lfu_weights()[t % H] << (t / H - base) at token t; all counts are divided by 2^(t / H - base) and base
  /// becomes t / H once this is above kLfuRebase.
  kLfu,
  /// Layers come in order, so what was just used is needed last. First those that were not used in the
  /// latest turn of their own layer, then the others; within both, those whose layer's turn is furthest away
  /// (the running layer's own, then the one before it, and so on). After the idea of Least-Stale in SpecMD
  /// (arXiv 2602.03921).
  kLeastStale,
  /// The highest age + scored_beta * d / L: age in tokens since the last use, d layers until the layer's
  /// next turn (L for the running layer's own). Integer arithmetic: age * L + scored_beta * d.
  kScored,
  /// The furthest next use: no policy has more hits under the same rules (Belady 1966).
  kBelady,
};
inline constexpr std::array kReplayPolicies = {ReplayPolicy::kLru, ReplayPolicy::kLfu,
                                               ReplayPolicy::kLeastStale, ReplayPolicy::kScored,
                                               ReplayPolicy::kBelady};
std::string_view name_of(ReplayPolicy policy);  // "lru", "lfu", "least-stale", "scored", "belady"

struct ReplayOptions {
  int64_t lfu_half_life_tokens = 64;  // 1 to kLfuMaxHalfLife; tuned engines find 32 to 128 flat
  int64_t scored_beta = 4;            // 0 to 1000000; 1 to 8 are reported as flat
};

inline constexpr int64_t kLfuRebase = 32;
inline constexpr int64_t kLfuMaxHalfLife = 4096;  // keeps every count below 2^63
/// What one use counts at each token of a half-life: 2^12 * 2^(r / H), rounded.
std::vector<uint64_t> lfu_weights(int64_t half_life_tokens);

/// What a trace asks of a pool with a given number of slots, in order.
struct ReplayCalls {
  struct Call {
    int32_t step = 0, layer = 0;  // layer: index among the MoE layers
    int64_t token = 0;            // tokens that have passed when the step ends
    size_t first = 0;             // into keys
    int32_t count = 0;            // 1 to slots
  };
  std::vector<Call> calls;
  std::vector<int32_t> keys;        // layer * experts + expert, ascending and distinct within a call
  std::vector<uint64_t> row_bytes;  // [layers]
  int64_t layers = 0, experts = 0, slots = 0;
  int64_t tokens = 0;         // rows that were not padding
  int64_t distinct_keys = 0;  // each must miss at least once
};

/// Throws Error kInvalidArgument: slots below what one token of one layer needs (top_k), or above all
/// experts.
ReplayCalls make_replay_calls(const Trace& trace, int64_t slots, bool decode_only);

struct ReplayResult {
  int64_t hits = 0, misses = 0;  // distinct experts a call
  int64_t tokens = 0;
  uint64_t missed_bytes = 0;  // rows that crossed the link

  double hit_rate() const;  // 0 for an empty trace
  double misses_per_token() const;
  double bytes_per_token() const;
};

/// Time: O(n log slots) for n keys, and for kScored another O(layers) a miss.
ReplayResult replay(const ReplayCalls& calls, ReplayPolicy policy, const ReplayOptions& options = {});

}  // namespace sluice
