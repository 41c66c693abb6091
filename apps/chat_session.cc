// Turns of a conversation through one Session, whose KV cache keeps what the turns share.
#include "apps/chat_session.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/error.h"
#include "text/chat_template_inputs.h"

namespace sluice::apps {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_between(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration<double, std::milli>(end - start).count();
}

int64_t common_prefix(std::span<const int32_t> a, std::span<const int32_t> b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

std::string line(const char* label, const std::string& value) {
  std::string text = label;
  text.resize(14, ' ');
  return text + value + '\n';
}

std::string one_decimal(double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f %s", value, unit);
  return text;
}

}  // namespace

ChatSession::ChatSession(const ModelOptions& model, const SamplingOptions& sampling)
    : tokenizer_(Tokenizer::load(std::filesystem::path(model.folder) / "tokenizer.json")),
      template_(ChatTemplate::load(model.folder)),
      loaded_(LoadedModel::load(model)),
      sampling_(sampling),
      chunk_tokens_(model.chunk_tokens),
      session_(*loaded_.runtime, {model.context_tokens, model.chunk_tokens}) {
  check(generate_options().sampling, session_.info().vocab_size);
}

GenerateOptions ChatSession::generate_options() const {
  GenerateOptions options;
  options.sampling = sampling_.resolve(loaded_.checkpoint.generation_config());
  options.sampling.vocab_limit = tokenizer_.vocab_size();
  options.max_tokens = sampling_.max_tokens;
  options.end_ids = loaded_.end_ids();
  return options;
}

std::vector<int32_t> ChatSession::encode_conversation() const {
  ChatTemplateInputs inputs;
  for (const Message& message : conversation_) {
    inputs.messages.push_back({{"role", message.role}, {"content", message.content}});
  }
  return tokenizer_.encode(template_.render(inputs));
}

// All but the last chunk of what is new, so that a long prompt can be stopped: generate() asks only once a
// token is there. Returns false if it was stopped. A prompt that does not fit is left to generate(), which
// refuses it.
bool ChatSession::prefill_early_chunks(std::span<const int32_t> prompt, int64_t cached,
                                       const StopQuestion& stopped) {
  const auto size = static_cast<int64_t>(prompt.size());
  if (size > session_.capacity()) return true;
  for (int64_t end = cached + chunk_tokens_; end < size; end += chunk_tokens_) {
    if (stopped()) return false;
    session_.prefill(prompt.first(static_cast<size_t>(end)));
  }
  return !stopped();
}

ChatSession::Answer ChatSession::answer(const TextSink& show, const StopQuestion& stopped) {
  const Clock::time_point start = Clock::now();
  const std::vector<int32_t> prompt = encode_conversation();
  TurnStats stats;
  stats.prompt_tokens = static_cast<int64_t>(prompt.size());
  stats.cached_tokens = std::min(common_prefix(session_.ids(), prompt), stats.prompt_tokens - 1);
  auto usage = std::make_unique<ExpertUsage>(session_.info());
  session_.observe_routes(usage->observer());  // until the next turn sets another

  const Clock::time_point prefill_start = Clock::now();
  if (!prefill_early_chunks(prompt, stats.cached_tokens, stopped)) return {"", FinishReason::kCancelled};
  const Clock::time_point generate_start = Clock::now();
  const GenerateOptions options = generate_options();
  StreamDecoder decoder(tokenizer_);
  Answer answer;
  const auto emit = [&](const std::string& piece) {
    answer.text += piece;
    if (!piece.empty()) show(piece);
  };
  const GenerateResult result = generate(session_, prompt, options, [&](const SampledToken& token) {
    const auto& ends = options.end_ids;
    if (std::find(ends.begin(), ends.end(), token.id) == ends.end()) emit(decoder.push(token.id));
    return !stopped();
  });
  emit(decoder.finish());

  answer.finish_reason = result.finish_reason;
  stats.answer_tokens = static_cast<int64_t>(result.ids.size());
  stats.ttft_ms = milliseconds_between(start, generate_start) + result.ttft_ms;
  const double prefill_ms = milliseconds_between(prefill_start, generate_start) + result.ttft_ms;
  stats.prefill_tps = static_cast<double>(stats.prompt_tokens - stats.cached_tokens) * 1000 / prefill_ms;
  stats.decode_tps = result.decode_tps;
  last_ = stats;
  usage_ = std::move(usage);
  return answer;
}

FinishReason ChatSession::say(const std::string& text, const TextSink& show, const StopQuestion& stopped) {
  conversation_.push_back({"user", text});
  try {
    Answer given = answer(show, stopped);
    if (given.finish_reason == FinishReason::kCancelled && given.text.empty()) {
      conversation_.pop_back();
    } else {
      conversation_.push_back({"assistant", std::move(given.text)});
    }
    return given.finish_reason;
  } catch (...) {
    conversation_.pop_back();
    throw;
  }
}

std::string ChatSession::stats() const {
  const auto number = [](int64_t value) { return std::to_string(value); };
  std::string text =
      line("context", number(std::ssize(session_.ids())) + " of " + number(session_.capacity()) + " tokens");
  if (!last_) return text + "no answer yet\n";
  text += line("prompt",
               number(last_->prompt_tokens) + " tokens, " + number(last_->cached_tokens) + " of them cached");
  text += line("answer", number(last_->answer_tokens) + " tokens");
  text += line("first token", one_decimal(last_->ttft_ms, "ms"));
  text += line("prefill", one_decimal(last_->prefill_tps, "tokens/s"));
  text += line("decode", one_decimal(last_->decode_tps, "tokens/s"));
  return text + usage_->table();
}

}  // namespace sluice::apps
