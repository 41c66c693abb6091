// Turns of a conversation through one Session, whose KV cache keeps what the turns share.
#include "apps/chat_session.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/counted.h"
#include "base/error.h"
#include "text/chat_template_inputs.h"

namespace sluice::apps {
namespace {

using Clock = std::chrono::steady_clock;

// 10 ms of a link that moves 25 GB/s: nobody who types an answer notices.
constexpr size_t kIdleFillBytes = size_t{256} << 20;

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
    : model_(model),
      tokenizer_(load_tokenizer(model)),
      template_(ChatTemplate::load(model.place.folder())),
      loaded_(LoadedModel::load(model)),
      sampling_(sampling),
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

ChatSession::Answer ChatSession::answer(const TextSink& show, const StopQuestion& stopped) {
  const Clock::time_point start = Clock::now();
  const std::vector<int32_t> prompt = encode_conversation();
  TurnStats stats;
  stats.prompt_tokens = static_cast<int64_t>(prompt.size());
  stats.cached_tokens = std::min(common_prefix(session_.ids(), prompt), stats.prompt_tokens - 1);
  auto usage = std::make_unique<ExpertUsage>(session_.info());
  session_.observe_routes(usage->observer());  // until the next turn sets another

  const Clock::time_point generate_start = Clock::now();
  const GenerateOptions options = generate_options();
  StreamDecoder decoder(tokenizer_);
  Answer answer;
  const auto emit = [&](const std::string& piece) {
    answer.text += piece;
    if (!piece.empty()) show(piece);
  };
  const auto on_token = [&](const SampledToken& token) {
    const auto& ends = options.end_ids;
    if (std::find(ends.begin(), ends.end(), token.id) == ends.end()) emit(decoder.push(token.id));
    return !stopped();
  };
  // generate() asks only once a token is there; a long prompt has to stop before.
  session_.between_layers([&] {
    if (stopped()) throw Error(ErrorCode::kCancelled, "stopped");
  });
  GenerateResult result;
  try {
    result = generate(session_, prompt, options, on_token);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCancelled) throw;
    return {"", FinishReason::kCancelled};
  }
  emit(decoder.finish());

  answer.finish_reason = result.finish_reason;
  stats.answer_tokens = static_cast<int64_t>(result.ids.size());
  stats.ttft_ms = milliseconds_between(start, generate_start) + result.ttft_ms;
  stats.prefill_tps = static_cast<double>(stats.prompt_tokens - stats.cached_tokens) * 1000 / result.ttft_ms;
  stats.decode_tps = result.decode_tps;
  stats.context_tokens = std::ssize(session_.ids());
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

void ChatSession::idle() {
  if (ResidentExperts* resident = loaded_.runtime->resident()) resident->fill_idle(kIdleFillBytes);
}

std::string ChatSession::resize(const std::string& slots) {
  ResidentExperts* resident = loaded_.runtime->resident();
  const int64_t wanted = parse_slots(slots, expert_shape(session_.info()));
  if (resident == nullptr || wanted == 0) {
    throw Error(ErrorCode::kInvalidArgument,
                "experts have no slots here; start with --expert-slots and a number or a share");
  }
  const int64_t before = resident->slots();
  resident->resize(wanted);
  const std::string now = counted(resident->slots(), "expert slot");
  return resident->slots() == before ? now + ", as before" : now + " instead of " + std::to_string(before);
}

std::string ChatSession::stats() const {
  const auto number = [](int64_t value) { return std::to_string(value); };
  std::string text = line("context", number(last_ ? last_->context_tokens : 0) + " of " +
                                         number(session_.capacity()) + " tokens");
  if (!last_) return text + "no answer yet\n";
  text += line("prompt", counted(last_->prompt_tokens, "token") + ", " + number(last_->cached_tokens) +
                             " of them cached");
  text += line("answer", counted(last_->answer_tokens, "token"));
  text += line("first token", one_decimal(last_->ttft_ms, "ms"));
  text += line("prefill", one_decimal(last_->prefill_tps, "tokens/s"));
  text += line("decode", one_decimal(last_->decode_tps, "tokens/s"));
  return text + usage_->table();
}

}  // namespace sluice::apps
