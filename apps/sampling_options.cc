// Flags of the sampler.
#include "apps/sampling_options.h"
#include "apps/arguments.h"

#include <algorithm>
#include <charconv>
#include <random>

#include "apps/usage_error.h"

namespace sluice::apps {

void SamplingOptions::add_to(Command& command) {
  const std::string group = "Sampling (default: the model's generation_config.json)";
  const auto add = [&](const char* name, auto& value, const char* help) {
    command.option(name, value, help).group(group);
  };
  add("--temperature", temperature, "0 is greedy");
  add("--top-k", top_k, "Keep the k most likely tokens; 0 is off");
  add("--top-p", top_p, "Keep the most likely tokens that together reach p; 1 is off, 0 is greedy");
  add("--min-p", min_p, "Keep tokens with at least p times the highest probability; 0 is off");
  add("--repetition-penalty", repetition_penalty,
      "Above 1 makes tokens of prompt and answer less likely; 1 is off");
  add("--presence-penalty", presence_penalty, "Subtracted once from tokens of the answer; 0 is off");
  add("--frequency-penalty", frequency_penalty, "Subtracted for each occurrence in the answer; 0 is off");
  add("--seed", seed, "The same seed, prompt and settings give the same answer");
  add("--logit-bias", logit_bias, "ID=VALUE, added to that token's logit; may be repeated");
  command.option("--max-tokens", max_tokens, "Longest answer in tokens").at_least(1).show_default();
}

void SamplingOptions::check() const {
  try {
    sluice::check(resolve(Config()), INT32_MAX);
  } catch (const Error& error) {
    // "top_k: -1 is outside ...": the flag has dashes.
    std::string text = error.what();
    if (text.starts_with("--")) throw UsageError(text);
    const size_t end = std::min(text.find_first_of(": "), text.size());
    std::replace(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '_', '-');
    throw UsageError("--" + text);
  }
}

SamplingParams SamplingOptions::resolve(const Config& generation_config) const {
  SamplingParams p = sampling_defaults(generation_config);
  if (temperature) p.temperature = *temperature;
  if (top_k) p.top_k = *top_k;
  if (top_p) p.top_p = *top_p;
  if (min_p) p.min_p = *min_p;
  if (repetition_penalty) p.repetition_penalty = *repetition_penalty;
  if (presence_penalty) p.presence_penalty = *presence_penalty;
  if (frequency_penalty) p.frequency_penalty = *frequency_penalty;
  p.seed = seed ? *seed : std::random_device{}();
  for (const std::string& item : logit_bias) {
    const size_t equals = item.find('=');
    int32_t id = 0;
    double value = 0;
    const auto read = [&](size_t begin, size_t end, auto& number) {
      const auto [rest, error] = std::from_chars(item.data() + begin, item.data() + end, number);
      return error == std::errc() && rest == item.data() + end;
    };
    if (equals == std::string::npos || !read(0, equals, id) || !read(equals + 1, item.size(), value)) {
      throw Error(ErrorCode::kInvalidArgument,
                  "--logit-bias " + item + ": expected ID=VALUE, for example 42=-5");
    }
    p.logit_bias[id] = value;
  }
  return p;
}

}  // namespace sluice::apps
