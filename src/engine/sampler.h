// From logits to a token.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/config.h"

namespace sluice {

/// How the next token is chosen. The defaults are greedy with everything off.
struct SamplingParams {
  double temperature = 0;         // 0: greedy
  int64_t top_k = 0;              // 0: off
  double top_p = 1;               // 1: off, 0: greedy
  double min_p = 0;               // 0: off; keeps tokens with at least min_p times the highest probability
  double repetition_penalty = 1;  // 1: off; counts prompt and answer (Keskar et al., "CTRL", 2019)
  double presence_penalty = 0;    // 0: off; counts the answer alone, once a token
  double frequency_penalty = 0;   // 0: off; counts the answer alone, each occurrence
  uint64_t seed = 0;
  std::map<int32_t, double> logit_bias;  // added; -infinity: never chosen
  int64_t vocab_limit = 0;  // ids from here on (rows that only pad a vocabulary) are never chosen; 0: none
  int64_t logprobs = -1;    // -1: none, n: the chosen token's and the n highest below vocab_limit

  bool greedy() const { return temperature == 0 || top_p == 0 || top_k == 1; }
};

/// Throws Error kInvalidArgument with the field's name and its range; `vocab_size` bounds the ids of
/// logit_bias.
void check(const SamplingParams& params, int64_t vocab_size);

/// What makes logits [vocab_size] unusable, by token: a NaN, +infinity, or nothing above -infinity. Empty
/// where they are fine.
std::string problem_of_logits(std::span<const float> logits);

/// What generation_config.json says: do_sample (false: greedy), temperature, top_k, top_p, min_p,
/// repetition_penalty.
SamplingParams sampling_defaults(const Config& generation_config);

struct SampledToken {
  int32_t id = 0;
  double logprob = 0;                                    // of the model's own distribution
  std::vector<std::pair<int32_t, double>> top_logprobs;  // highest first; only with params.logprobs > 0
};

/// Chooses tokens of one request. The random number of the n-th token of an answer is keyed by (seed, n)
/// alone.
class Sampler {
 public:
  /// `prompt` counts for the repetition penalty.
  Sampler(SamplingParams params, int64_t vocab_size, std::span<const int32_t> prompt);

  /// Picks from logits [vocab_size] and remembers the choice. Order: bias, penalties, temperature, top-k,
  /// top-p, min-p, draw. Ties go to the lower id. Throws Error kInvalidArgument for logits that
  /// problem_of_logits names, and where the settings leave no token.
  SampledToken sample(std::span<const float> logits);

 private:
  void apply_penalties();
  int32_t draw();

  SamplingParams params_;
  std::vector<uint8_t> in_prompt_;
  std::vector<int32_t> in_answer_;  // occurrences
  int64_t tokens_ = 0;
  std::vector<float> scores_;
  std::vector<std::pair<float, int32_t>> candidates_;
};

}  // namespace sluice
