// One conversation with a model: its tokens, its KV cache, and generation from it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/runtime.h"
#include "engine/sampler.h"

namespace sluice {

struct SessionOptions {
  int64_t capacity_tokens = 0;  // of the KV cache; 0: the model's positions
  int64_t chunk_tokens = 512;   // prefill takes at most so many tokens a forward
};

/// Runs tokens of one sequence through a model. Not thread-safe.
class Session {
 public:
  /// Throws Error kOutOfMemory.
  Session(Runtime& runtime, const SessionOptions& options);

  /// Makes the sequence equal to `ids`: keeps the longest common prefix with what was run before, forgets the
  /// rest, and runs what is missing in chunks (at least the last token), one after the other or a group of
  /// them layer by layer; that changes no bit. Returns the logits of the last token [vocab_size]. Throws
  /// Error kInvalidArgument: an empty sequence, an id outside the vocabulary, or "prompt is too long: N
  /// tokens > M maximum".
  std::span<const float> prefill(std::span<const int32_t> ids);
  /// Appends one token and returns its logits. Throws as prefill.
  std::span<const float> decode(int32_t id);

  /// Runs `ids` from an empty sequence and gives the logits of every token to `sink`, in order: (first
  /// position, logits [rows, vocab_size], rows). Tokens from `decode_from` on go one by one.
  void run_all(std::span<const int32_t> ids, int64_t decode_from,
               const std::function<void(int64_t, std::span<const float>, int64_t)>& sink);

  void observe_routes(RouteObserver observer) { observed_.observe(std::move(observer)); }
  const std::vector<int32_t>& ids() const { return ids_; }
  /// Tokens of the last prefill that were not run again.
  int64_t cached_tokens() const { return cached_tokens_; }
  int64_t capacity() const { return cache_.capacity(); }
  const ModelInfo& info() const { return runtime_.model().info(); }

  /// Called between two layers of a prefill, and between the chunks of a layer; may decode with another
  /// session of the same runtime.
  void between_layers(std::function<void()> call) { between_layers_ = std::move(call); }

  /// Throws what prefill would throw for `ids`.
  void check_ids(std::span<const int32_t> ids) const;

 private:
  int64_t rows_together(int64_t rows) const;
  /// Queues a forward; true if that was a recorded step, whose logits are queued with it.
  bool queue(std::span<const int32_t> ids, bool decode);
  bool queue_recorded(const Batch& batch);
  void queue_logits(const Batch& batch, int64_t rows);
  void reserve_logits(int64_t rows);
  size_t logits_bytes(int64_t rows) const {
    return static_cast<size_t>(rows * info().vocab_size) * sizeof(float);
  }
  void make_batches(std::span<const int32_t> ids);
  void run_layers(bool decode);
  void run_layer(int64_t layer);
  std::span<const float> wait_for_logits(const Batch& batch, int64_t rows, bool queued);
  void keep(std::span<const int32_t> ids);
  std::span<const float> forward(std::span<const int32_t> ids, int64_t logit_rows, bool decode);

  Runtime& runtime_;
  ObservedExecutor observed_;
  std::unique_ptr<BatchMemory> memory_;  // of one chunk
  std::vector<Batch> batches_;           // of the running forward: one, or the chunks of a group
  std::vector<MoeBlock> blocks_;         // of the running layer
  KvCache cache_;
  int64_t chunk_tokens_;
  int64_t cached_tokens_ = 0;
  std::vector<int32_t> ids_;
  std::vector<int32_t> positions_;  // of the running forward; the device copies from here
  Buffer device_logits_, logits_;   // the second is page-locked host memory
  std::map<ResidentExperts::StepKind, std::unique_ptr<Graph>> steps_;
  std::function<void()> between_layers_;
};

struct GenerateOptions {
  SamplingParams sampling;
  int64_t max_tokens = 512;
  std::vector<int32_t> end_ids;  // generation stops after one of these; it is part of the result
};

enum class FinishReason { kStop, kLength, kCancelled };
std::string_view name_of(FinishReason reason);  // "stop", "length", "cancelled"

struct GenerateResult {
  std::vector<int32_t> ids;  // with the end token, if one came
  std::vector<SampledToken> tokens;
  FinishReason finish_reason = FinishReason::kLength;
  double ttft_ms = 0;      // from the call to the first token
  double prefill_tps = 0;  // prompt tokens that were run, a second
  double decode_tps = 0;   // tokens after the first, a second
};

/// Generates from `prompt`. `on_token` sees each token as it comes and returns false to stop. max_tokens is
/// cut to what the session has room for; 0 or less is an error.
GenerateResult generate(Session& session, std::span<const int32_t> prompt, const GenerateOptions& options,
                        const std::function<bool(const SampledToken&)>& on_token);

}  // namespace sluice
