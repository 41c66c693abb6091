// Prefill, decode and generation of one sequence.
#include "engine/session.h"

#include <algorithm>
#include <chrono>
#include <numeric>
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
      memory_(runtime.model().make_batch_memory(BatchUse::kAlone, runtime.model().max_rows())),
      cache_(runtime.device(), runtime.model().info().kv, capacity_of(runtime.model(), options)),
      chunk_tokens_(std::clamp<int64_t>(options.chunk_tokens, 1, runtime.model().max_rows())) {
  if (capacity() > chunk_tokens_) runtime.reserve_group(capacity());
}

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

int64_t Session::rows_together(int64_t rows) const {
  const ResidentExperts* resident = runtime_.resident();
  if (resident == nullptr) return std::min(rows, chunk_tokens_);
  return resident->rows_together(rows, chunk_tokens_, runtime_.group_tokens());
}

void Session::make_batches(std::span<const int32_t> ids) {
  const auto rows = static_cast<int64_t>(ids.size());
  const bool group = rows > chunk_tokens_;
  batches_.clear();
  for (int64_t at = 0; at < rows; at += chunk_tokens_) {
    Batch& batch = batches_.emplace_back();
    batch.memory = group ? runtime_.group_memory() : memory_.get();
    batch.first_row = at;
    batch.rows = std::min(chunk_tokens_, rows - at);
    batch.first_position = cache_.length() + at;
    batch.cache = &cache_;
  }
  positions_.resize(ids.size());
  std::iota(positions_.begin(), positions_.end(), static_cast<int32_t>(cache_.length()));
  Stream& stream = runtime_.compute();
  stream.copy("ids", batches_.front().ids(), ids.data(), ids.size_bytes());
  stream.copy("positions", batches_.front().positions(), positions_.data(), ids.size_bytes());
}

void Session::run_layer(int64_t layer) {
  Model& model = runtime_.model();
  Stream& stream = runtime_.compute();
  blocks_.clear();
  for (size_t c = 0; c < batches_.size(); ++c) {
    if (c > 0 && between_layers_) between_layers_();
    const auto block = model.layer_to_experts(stream, layer, batches_[c], observed_);
    if (block) blocks_.push_back(*block);
  }
  if (blocks_.empty()) return;
  observed_.run_blocks(stream, blocks_);
  for (size_t c = 0; c < batches_.size(); ++c) model.layer_from_experts(stream, batches_[c], blocks_[c]);
}

void Session::run_layers(bool decode) {
  for (Batch& batch : batches_) runtime_.model().embed(runtime_.compute(), batch);
  for (int64_t l = 0; l < info().layers; ++l) {
    run_layer(l);
    if (!decode && between_layers_ && l + 1 < info().layers) between_layers_();
  }
}

/// Logits of the last `rows` tokens, to the host.
void Session::queue_logits(const Batch& batch, int64_t rows) {
  Stream& stream = runtime_.compute();
  runtime_.model().logits(stream, batch, rows, device_logits_.as<float>());
  stream.copy("logits", logits_.data(), device_logits_.data(), logits_bytes(rows));
}

void Session::reserve_logits(int64_t rows) {
  if (device_logits_.bytes() >= logits_bytes(rows)) return;
  steps_.clear();  // they write to the old ones
  device_logits_ = runtime_.device().allocate(logits_bytes(rows), "logits");
  logits_ = runtime_.device().allocate(logits_bytes(rows), "logits", MemoryKind::kPinned);
}

/// A step of one token and its logits as a graph; false, and nothing is queued, where it cannot be recorded
/// as things are.
bool Session::queue_recorded(const Batch& batch) {
  if (batch.rows != 1 || observed_.is_observed()) return false;
  ResidentExperts* resident = runtime_.resident();
  const auto kind = resident != nullptr ? resident->step_kind() : ResidentExperts::StepKind();
  if (!kind) return false;
  reserve_logits(1);
  std::unique_ptr<Graph>& graph = steps_[*kind];
  if (!graph) {
    graph = runtime_.compute().capture([&] {
      run_layers(true);
      if (resident != nullptr) resident->join_decode();
      queue_logits(batch, 1);
    });
  }
  if (graph) runtime_.compute().run(*graph);
  return graph != nullptr;
}

bool Session::queue(std::span<const int32_t> ids, bool decode) {
  const auto rows = static_cast<int64_t>(ids.size());
  make_batches(ids);
  ResidentExperts* resident = runtime_.resident();
  if (resident == nullptr) {
    if (decode && queue_recorded(batches_.back())) return true;
    run_layers(decode);
    return false;
  }
  decode ? resident->begin_decode(rows) : resident->begin_prefill(rows, chunk_tokens_);
  bool recorded = false;
  try {
    recorded = decode && queue_recorded(batches_.back());
    if (!recorded) run_layers(decode);
  } catch (...) {
    decode ? resident->give_up_decode() : resident->give_up_prefill();
    throw;
  }
  if (recorded) {
    resident->end_recorded_decode();
  } else {
    decode ? resident->end_decode() : resident->end_prefill();
  }
  resident->queue_checks();
  return recorded;
}

std::span<const float> Session::wait_for_logits(const Batch& batch, int64_t rows, bool queued) {
  if (rows > 0 && !queued) {
    reserve_logits(rows);
    queue_logits(batch, rows);
  }
  try {
    runtime_.device().wait(runtime_.compute(),
                           rows > 0 ? "logits" : "prefill chunk");  // the ids are the caller's
  } catch (...) {
    if (runtime_.resident() != nullptr) runtime_.resident()->forget_slots();
    throw;
  }
  return {logits_.as<float>(), static_cast<size_t>(rows * info().vocab_size)};
}

// After a wait. Only now: keys and values of a forward that failed must not serve a later prompt.
void Session::keep(std::span<const int32_t> ids) {
  if (runtime_.resident() != nullptr) runtime_.resident()->check();
  cache_.advance(static_cast<int64_t>(ids.size()));
  ids_.insert(ids_.end(), ids.begin(), ids.end());
}

std::span<const float> Session::forward(std::span<const int32_t> ids, int64_t logit_rows, bool decode) {
  const bool queued = queue(ids, decode);
  const std::span<const float> logits = wait_for_logits(batches_.back(), logit_rows, queued);
  keep(ids);
  return logits;
}

std::span<const float> Session::prefill(std::span<const int32_t> ids) {
  check_ids(ids);
  const auto common = std::mismatch(ids_.begin(), ids_.end(), ids.begin(), ids.end()).first - ids_.begin();
  cached_tokens_ = std::min<int64_t>(common, static_cast<int64_t>(ids.size()) - 1);
  cache_.truncate(cached_tokens_);
  ids_.resize(static_cast<size_t>(cached_tokens_));
  std::span<const int32_t> rest = ids.subspan(static_cast<size_t>(cached_tokens_));
  while (true) {
    const auto rows = static_cast<size_t>(rows_together(static_cast<int64_t>(rest.size())));
    if (rows == rest.size()) return forward(rest, 1, false);
    forward(rest.first(rows), 0, false);
    rest = rest.subspan(rows);
  }
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
    const bool decode = at >= decode_from;
    const int64_t rows = decode ? 1 : rows_together(std::min(decode_from, n) - at);
    const auto part = ids.subspan(static_cast<size_t>(at), static_cast<size_t>(rows));
    const bool queued = queue(part, decode);
    for (const Batch& batch : batches_) {
      const std::span<const float> logits = wait_for_logits(batch, batch.rows, queued);
      if (batch.first_row == 0) keep(part);
      sink(batch.first_position, logits, batch.rows);
    }
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
