// The flags that set how tokens are chosen; what is not given comes from the model's generation_config.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/session.h"

namespace sluice::apps {

class Command;

struct SamplingOptions {
  std::optional<double> temperature, top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty;
  std::optional<int64_t> top_k;
  std::optional<uint64_t> seed;
  std::vector<std::string> logit_bias;  // "ID=VALUE"
  int64_t max_tokens = 512;

  void add_to(Command& command);
  /// Throws UsageError with the flag's name for a flag out of range, before a model is there. (Ids of
  /// --logit-bias beyond its vocabulary are refused later.)
  void check() const;
  /// Defaults of the model, overridden by the flags. Without --seed each call gets another seed. Throws
  /// Error.
  SamplingParams resolve(const Config& generation_config) const;
};

}  // namespace sluice::apps
