// The sampling chain on the host.
#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

#include "base/error.h"
#include "base/random.h"

namespace sluice {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kNever = -std::numeric_limits<float>::infinity();

void require(bool ok, const std::string& name, double value, const std::string& range) {
  if (ok) return;
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value);
  throw Error(ErrorCode::kInvalidArgument, name + ": " + text + " is outside " + range);
}

bool higher(const std::pair<float, int32_t>& a, const std::pair<float, int32_t>& b) {
  return a.first != b.first ? a.first > b.first : a.second < b.second;
}

double log_sum_exp(std::span<const float> logits) {
  const float highest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - static_cast<double>(highest));
  return static_cast<double>(highest) + std::log(sum);
}

}  // namespace

std::string problem_of_logits(std::span<const float> logits) {
  bool possible = false;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]) || logits[i] > kLargest) {
      return std::string("the model gave ") + (std::isnan(logits[i]) ? "NaN" : "+infinity") +
             " as the logit of token " + std::to_string(i) + ": are its weights finite?";
    }
    possible = possible || logits[i] > kNever;
  }
  return possible ? "" : "the model gave -infinity as the logit of every token: are its weights finite?";
}

void check(const SamplingParams& p, int64_t vocab_size) {
  const double kHuge = 1e6;
  require(p.temperature >= 0 && p.temperature <= kHuge, "temperature", p.temperature, "0 ... 1e6");
  require(p.top_k >= 0, "top_k", static_cast<double>(p.top_k), "0 (off) and up");
  require(p.top_p >= 0 && p.top_p <= 1, "top_p", p.top_p, "0 (greedy) ... 1 (off)");
  require(p.min_p >= 0 && p.min_p <= 1, "min_p", p.min_p, "0 (off) ... 1");
  require(p.repetition_penalty >= 1e-6 && p.repetition_penalty <= kHuge, "repetition_penalty",
          p.repetition_penalty, "1e-6 ... 1e6 (1 is off)");
  require(std::abs(p.presence_penalty) <= kHuge, "presence_penalty", p.presence_penalty, "-1e6 ... 1e6");
  require(std::abs(p.frequency_penalty) <= kHuge, "frequency_penalty", p.frequency_penalty, "-1e6 ... 1e6");
  require(p.vocab_limit >= 0, "vocab_limit", static_cast<double>(p.vocab_limit), "0 (off) and up");
  require(p.logprobs >= -1 && p.logprobs <= vocab_size, "logprobs", static_cast<double>(p.logprobs),
          "0 ... " + std::to_string(vocab_size));
  for (const auto& [id, bias] : p.logit_bias) {
    require(id >= 0 && id < vocab_size, "logit_bias: token", id, "0 ... " + std::to_string(vocab_size - 1));
    require(std::abs(bias) <= static_cast<double>(kLargest) || bias == static_cast<double>(kNever),
            "logit_bias of token " + std::to_string(id), bias, "-3.4e38 ... 3.4e38 (or -inf: never chosen)");
  }
}

SamplingParams sampling_defaults(const Config& config) {
  SamplingParams p;
  const double kHuge = 1e6;
  p.repetition_penalty = config.number_or({"repetition_penalty"}, 1e-6, kHuge, 1.0);
  if (!config.boolean_or({"do_sample"}, false)) return p;
  p.temperature = config.number_or({"temperature"}, 0, kHuge, 1.0);
  p.top_k = config.integer_or({"top_k"}, 0, int64_t{1} << 31, 50);
  p.top_p = config.number_or({"top_p"}, 0, 1, 1.0);
  p.min_p = config.number_or({"min_p"}, 0, 1, 0.0);
  return p;
}

Sampler::Sampler(SamplingParams params, int64_t vocab_size, std::span<const int32_t> prompt)
    : params_(std::move(params)),
      in_prompt_(static_cast<size_t>(vocab_size)),
      in_answer_(static_cast<size_t>(vocab_size)),
      scores_(static_cast<size_t>(vocab_size)) {
  check(params_, vocab_size);
  for (const int32_t id : prompt) in_prompt_[static_cast<size_t>(id)] = 1;
}

SampledToken Sampler::sample(std::span<const float> logits) {
  SLUICE_CHECK(logits.size() == scores_.size());
  if (const std::string problem = problem_of_logits(logits); !problem.empty()) {
    throw Error(ErrorCode::kInvalidArgument, problem);
  }
  std::copy(logits.begin(), logits.end(), scores_.begin());
  for (const auto& [id, bias] : params_.logit_bias)
    scores_[static_cast<size_t>(id)] += static_cast<float>(bias);
  apply_penalties();
  if (params_.vocab_limit > 0 && params_.vocab_limit < static_cast<int64_t>(scores_.size())) {
    std::fill(scores_.begin() + params_.vocab_limit, scores_.end(), kNever);
  }
  // Large settings overflow: +infinity would make NaN of the differences below.
  for (float& score : scores_) score = std::min(score, kLargest);
  if (*std::max_element(scores_.begin(), scores_.end()) == kNever) {
    throw Error(ErrorCode::kInvalidArgument, "logit_bias and penalties leave no token to choose");
  }

  SampledToken token;
  token.id = params_.greedy()
                 ? static_cast<int32_t>(std::max_element(scores_.begin(), scores_.end()) - scores_.begin())
                 : draw();
  ++in_answer_[static_cast<size_t>(token.id)];
  ++tokens_;

  if (params_.logprobs >= 0) {
    const double total = log_sum_exp(logits);
    token.logprob = static_cast<double>(logits[static_cast<size_t>(token.id)]) - total;
    candidates_.clear();
    const size_t ids = params_.vocab_limit > 0
                           ? std::min(logits.size(), static_cast<size_t>(params_.vocab_limit))
                           : logits.size();
    for (size_t i = 0; i < ids; ++i) candidates_.emplace_back(logits[i], static_cast<int32_t>(i));
    const int64_t shown = std::min(params_.logprobs, static_cast<int64_t>(ids));
    std::partial_sort(candidates_.begin(), candidates_.begin() + shown, candidates_.end(), higher);
    for (int64_t i = 0; i < shown; ++i) {
      const auto& [logit, id] = candidates_[static_cast<size_t>(i)];
      token.top_logprobs.emplace_back(id, static_cast<double>(logit) - total);
    }
  }
  return token;
}

void Sampler::apply_penalties() {
  const auto repetition = static_cast<float>(params_.repetition_penalty);
  const auto presence = static_cast<float>(params_.presence_penalty);
  const auto frequency = static_cast<float>(params_.frequency_penalty);
  if (repetition == 1 && presence == 0 && frequency == 0) return;
  for (size_t i = 0; i < scores_.size(); ++i) {
    float& score = scores_[i];
    if (in_prompt_[i] != 0 || in_answer_[i] > 0) score = score > 0 ? score / repetition : score * repetition;
    if (in_answer_[i] > 0) score -= presence + frequency * static_cast<float>(in_answer_[i]);
  }
}

int32_t Sampler::draw() {
  candidates_.clear();
  for (size_t i = 0; i < scores_.size(); ++i) candidates_.emplace_back(scores_[i], static_cast<int32_t>(i));
  if (params_.top_k > 0 && params_.top_k < static_cast<int64_t>(candidates_.size())) {
    std::partial_sort(candidates_.begin(), candidates_.begin() + params_.top_k, candidates_.end(), higher);
    candidates_.resize(static_cast<size_t>(params_.top_k));
  } else {
    std::sort(candidates_.begin(), candidates_.end(), higher);
  }
  // Probabilities over what top-k left, highest first; top-p keeps the shortest head that reaches it.
  const double highest = static_cast<double>(candidates_[0].first);
  std::vector<double> weights;
  double total = 0;
  for (const auto& candidate : candidates_) {
    weights.push_back(std::exp((static_cast<double>(candidate.first) - highest) / params_.temperature));
    total += weights.back();
  }
  size_t kept = 0;
  double sum = 0;
  for (const double needed = params_.top_p * total; kept < weights.size(); ++kept) {
    if (kept > 0 && (sum >= needed || weights[kept] < params_.min_p)) break;  // weights[0] is 1
    sum += weights[kept];
  }
  const double target = uniform(params_.seed, static_cast<uint64_t>(tokens_)) * sum;
  double passed = 0;
  for (size_t i = 0; i < kept; ++i) {
    passed += weights[i];
    if (target < passed) return candidates_[i].second;
  }
  return candidates_[kept - 1].second;
}

}  // namespace sluice
