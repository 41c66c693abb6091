// The request, and the arms of the published comparison.
#include "engine/simulation.h"

#include <algorithm>
#include <vector>

namespace sluice {
namespace {

/// Ids spread over the vocabulary: what matters is that routes differ from token to token.
std::vector<int32_t> spread_ids(int64_t n, int64_t start, int64_t vocab_size) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < n; ++i) ids.push_back(static_cast<int32_t>((i * 7919 + start) % vocab_size));
  return ids;
}

void decode(Session& session, std::span<const float> logits, int64_t tokens) {
  for (int64_t i = 0; i < tokens; ++i) {
    logits =
        session.decode(static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
  }
}

}  // namespace

SimulatedRun simulate(Runtime& runtime, const TimedDevice& clock, const SessionOptions& options,
                      const SimulatedRequest& request) {
  const int64_t vocab = runtime.model().info().vocab_size;
  Session session(runtime, options);
  if (request.warm_tokens > 0) {
    decode(session, session.prefill(spread_ids(8, 101, vocab)), request.warm_tokens);
  }
  const TimedReport start = clock.report();
  const std::span<const float> logits = session.prefill(spread_ids(request.prompt_tokens, 13, vocab));
  const TimedReport first = clock.report();
  decode(session, logits, request.decode_tokens);
  const TimedReport end = clock.report();
  SimulatedRun run;
  const double prefill_us = first.now_us - start.now_us, decode_us = end.now_us - first.now_us;
  run.ttft_ms = prefill_us / 1000;
  run.prefill_link_share = (first.link_to_device_busy_us - start.link_to_device_busy_us) / prefill_us;
  if (ResidentExperts* resident = runtime.resident()) {
    const std::vector<PassRecord> passes = resident->report().passes;
    if (!passes.empty()) {
      run.prefill_link_bytes_per_s = static_cast<double>(passes.back().streamed_bytes) * 1e6 / prefill_us;
    }
  }
  if (request.decode_tokens == 0) return run;
  run.tokens_per_s = static_cast<double>(request.decode_tokens) * 1e6 / decode_us;
  run.decode_link_share = (end.link_to_device_busy_us - first.link_to_device_busy_us) / decode_us;
  return run;
}

std::span<const Arm> published_arms() {
  static const std::vector<Arm> arms = {
      {"neither", false, false}, {"priority", true, false}, {"epoch", false, true}, {"both", true, true}};
  return arms;
}

ExpertSettings arm_settings(const Arm& arm, const ExpertShape& shape) {
  ExpertSettings settings;
  const int64_t all = shape.layers * shape.experts;
  settings.slots = std::min(all, 2 * shape.experts + min_slots(shape));
  settings.ring_slots = std::min(settings.slots, 2 * shape.experts) / 2 * 2;
  settings.prefill = PrefillMode::kStream;
  settings.lookahead = LookaheadMode::kOff;
  settings.compare.hits = HitMode::kOff;
  settings.compare.high_copy_priority = arm.high_copy_priority;
  settings.compare.epoch_invalidation = arm.epoch_invalidation;
  return settings;
}

}  // namespace sluice
