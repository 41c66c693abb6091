// A conversation with a model: what was said, and what the model keeps of it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/conversation.h"
#include "apps/expert_usage.h"
#include "apps/loaded_model.h"
#include "apps/sampling_options.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace sluice::apps {

struct TurnStats {
  int64_t prompt_tokens = 0, cached_tokens = 0;  // cached: already in the KV cache, not run again
  int64_t answer_tokens = 0;
  int64_t context_tokens = 0;  // in the KV cache afterwards
  double ttft_ms = 0;          // from the user's message to the first token: rendering, encoding, prefill
  double prefill_tps = 0, decode_tps = 0;  // of the tokens that were run
};

using TextSink = std::function<void(std::string_view)>;
using StopQuestion = std::function<bool()>;

class ChatSession {
 public:
  /// Loads the model's tokenizer, template and weights. Throws Error; also for sampling flags that are out of
  /// range.
  ChatSession(const ModelOptions& model, const SamplingOptions& sampling);

  /// Says `text` and streams the answer, whole characters at a time, to `show`; `stopped` is asked between
  /// layers of the prefill and between tokens. The answer joins the conversation as far as it came; where
  /// nothing came, or with an Error (prompt too long, template that raises), the conversation is what it was
  /// before.
  FinishReason say(const std::string& text, const TextSink& show, const StopQuestion& stopped);

  /// Between turns: empty slots get experts that are popular, as long as that is a matter of milliseconds.
  void idle();
  /// Sets the number of slots ("64", "25%", "all"); returns a line for people. Throws Error with everything
  /// as it was.
  std::string resize(const std::string& slots);
  /// At the end: see LoadedModel::report.
  std::string finish() { return loaded_.report(model_); }

  Conversation& conversation() { return conversation_; }
  /// Lines for people: context used, the last turn's tokens and rates, the experts it used.
  std::string stats() const;
  const std::optional<TurnStats>& last_turn() const { return last_; }
  /// For a conversation that begins anew. (The KV cache keeps what the next turn may share with it.)
  void forget_stats() { last_.reset(); }
  int64_t context_tokens() const { return session_.capacity(); }

 private:
  struct Answer {
    std::string text;
    FinishReason finish_reason = FinishReason::kStop;
  };
  Answer answer(const TextSink& show, const StopQuestion& stopped);
  std::vector<int32_t> encode_conversation() const;
  GenerateOptions generate_options() const;

  const ModelOptions model_;
  Tokenizer tokenizer_;
  ChatTemplate template_;
  LoadedModel loaded_;
  SamplingOptions sampling_;
  Session session_;
  Conversation conversation_;
  std::optional<TurnStats> last_;
  std::unique_ptr<ExpertUsage> usage_;  // of the last turn
};

}  // namespace sluice::apps
