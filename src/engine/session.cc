// Prefill, decode and generation of one sequence.
#include "engine/session.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "base/error.h"

namespace sluice {
namespace {

int64_t capacity_of(const Model& model, const SessionOptions& options) {
  const int64_t positions = model.info().max_positions;
  return options.capacity_tokens > 0 ? std::min(options.capacity_tokens, positions) : positions;
}

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Session::Session(Runtime& runtime, const SessionOptions& options)
    : runtime_(runtime),
      observed_(runtime.experts(), runtime.device(), runtime.model().info().moe_layers),
      batch_(runtime.model().make_batch()),
      cache_(runtime.device(), runtime.model().info().kv, capacity_of(runtime.model(), options)),
      chunk_tokens_(std::clamp<int64_t>(options.chunk_tokens, 1, runtime.model().max_rows())) {}

void Session::check_ids(std::span<const int32_t> ids) const {
  if (ids.empty())
    throw Error(ErrorCode::kInvalidArgument, "the prompt is empty: it needs at least one token");
  const auto count = static_cast<int64_t>(ids.size());
  if (count > capacity()) {
    throw Error(ErrorCode::kInvalidArgument, "prompt is too long: " + std::to_string(count) + " tokens > " +
                                                 std::to_string(capacity()) + " maximum");
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= info().vocab_size) {
      throw Error(ErrorCode::kInvalidArgument, "token " + std::to_string(ids[i]) + " at position " +
                                                   std::to_string(i) + " is outside the vocabulary of " +
                                                   std::to_string(info().vocab_size));
    }
  }
}

void Session::run_layers(bool decode) {
  Stream& stream = runtime_.compute();
  ResidentExperts* resident = runtime_.resident();
  if (resident != nullptr)
    decode ? resident->begin_decode(batch_->rows) : resident->begin_prefill(batch_->rows);
  try {
    runtime_.model().embed(stream, *batch_);
    for (int64_t l = 0; l < info().layers; ++l) {
      runtime_.model().layer(stream, l, *batch_, observed_);
      if (!decode && between_layers_ && l + 1 < info().layers) between_layers_();
    }
  } catch (...) {
    if (resident != nullptr) decode ? resident->give_up_decode() : resident->give_up_prefill();
    throw;
  }
  if (resident == nullptr) return;
  decode ? resident->end_decode() : resident->end_prefill();
  resident->queue_checks();
}

std::span<const float> Session::forward(std::span<const int32_t> ids, int64_t logit_rows, bool decode) {
  const auto rows = static_cast<int64_t>(ids.size());
  Stream& stream = runtime_.compute();
  Batch& batch = *batch_;
  batch.rows = rows;
  batch.first_position = cache_.length();
  batch.cache = &cache_;
  stream.copy("ids", batch.ids(), ids.data(), ids.size_bytes());
  run_layers(decode);
  const auto values = static_cast<size_t>(logit_rows * info().vocab_size);
  if (logit_rows > 0) {
    if (device_logits_.bytes() < values * sizeof(float)) {
      device_logits_ = runtime_.device().allocate(values * sizeof(float), "logits");
    }
    logits_.resize(values);
    runtime_.model().logits(stream, batch, logit_rows, device_logits_.as<float>());
    stream.copy("logits", logits_.data(), device_logits_.data(), values * sizeof(float));
  }
  runtime_.device().wait(stream, logit_rows > 0 ? "logits" : "prefill chunk");  // `ids` is the caller's
  if (runtime_.resident() != nullptr) runtime_.resident()->check();
  // Only now: keys and values of a forward that failed must not serve a later prompt.
  cache_.advance(rows);
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  return {logits_.data(), values};
}

std::span<const float> Session::prefill(std::span<const int32_t> ids) {
  check_ids(ids);
  const auto common = std::mismatch(ids_.begin(), ids_.end(), ids.begin(), ids.end()).first - ids_.begin();
  cached_tokens_ = std::min<int64_t>(common, static_cast<int64_t>(ids.size()) - 1);
  cache_.truncate(cached_tokens_);
  ids_.resize(static_cast<size_t>(cached_tokens_));
  std::span<const int32_t> rest = ids.subspan(static_cast<size_t>(cached_tokens_));
  while (static_cast<int64_t>(rest.size()) > chunk_tokens_) {
    forward(rest.first(static_cast<size_t>(chunk_tokens_)), 0, false);
    rest = rest.subspan(static_cast<size_t>(chunk_tokens_));
  }
  return forward(rest, 1, false);
}

std::span<const float> Session::decode(int32_t id) {
  if (cache_.length() >= capacity()) {
    throw Error(ErrorCode::kInvalidArgument,
                "the context of " + std::to_string(capacity()) + " tokens is full");
  }
  check_ids({&id, 1});
  return forward({&id, 1}, 1, true);
}

void Session::run_all(std::span<const int32_t> ids, int64_t decode_from,
                      const std::function<void(int64_t, std::span<const float>, int64_t)>& sink) {
  check_ids(ids);
  cache_.truncate(0);
  ids_.clear();
  const auto n = static_cast<int64_t>(ids.size());
  for (int64_t at = 0; at < n;) {
    const int64_t rows = at >= decode_from ? 1 : std::min({chunk_tokens_, decode_from - at, n - at});
    const auto logits =
        forward(ids.subspan(static_cast<size_t>(at), static_cast<size_t>(rows)), rows, at >= decode_from);
    sink(at, logits, rows);
    at += rows;
  }
}

std::string_view name_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

GenerateResult generate(Session& session, std::span<const int32_t> prompt, const GenerateOptions& options,
                        const std::function<bool(const SampledToken&)>& on_token) {
  if (options.max_tokens <= 0) throw Error(ErrorCode::kInvalidArgument, "max_tokens must be at least 1");
  check(options.sampling, session.info().vocab_size);
  const auto start = std::chrono::steady_clock::now();
  GenerateResult result;
  std::span<const float> logits = session.prefill(prompt);
  const double prefill_ms = milliseconds_since(start);
  Sampler sampler(options.sampling, session.info().vocab_size, prompt);
  // The last token needs no position: its keys and values are never used.
  const int64_t room = session.capacity() - static_cast<int64_t>(prompt.size()) + 1;
  const int64_t limit = std::min(options.max_tokens, room);
  auto first_token = start;
  while (true) {
    result.tokens.push_back(sampler.sample(logits));
    const SampledToken& token = result.tokens.back();
    result.ids.push_back(token.id);
    if (result.ids.size() == 1) {
      first_token = std::chrono::steady_clock::now();
      result.ttft_ms = milliseconds_since(start);
    }
    const bool ended =
        std::find(options.end_ids.begin(), options.end_ids.end(), token.id) != options.end_ids.end();
    const bool wanted = !on_token || on_token(token);
    if (ended || !wanted || static_cast<int64_t>(result.ids.size()) >= limit) {
      result.finish_reason = ended    ? FinishReason::kStop
                             : wanted ? FinishReason::kLength
                                      : FinishReason::kCancelled;
      break;
    }
    logits = session.decode(token.id);
  }
  const double run = static_cast<double>(prompt.size()) - static_cast<double>(session.cached_tokens());
  result.prefill_tps = prefill_ms > 0 ? run * 1000 / prefill_ms : 0;
  const double decode_ms = milliseconds_since(first_token);
  const double later = static_cast<double>(result.ids.size()) - 1;
  result.decode_tps = later > 0 && decode_ms > 0 ? later * 1000 / decode_ms : 0;
  return result;
}

}  // namespace sluice
