// Texts for benches, made up from a seed: what they cost a tokenizer is like what real ones cost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::apps {

/// About `bytes` bytes that look like source code: indentation, calls, names of several words, numbers.
std::string sample_code(uint64_t seed, size_t bytes);
/// About `bytes` bytes of English words: a few are frequent, many are rare, some are made up.
std::string sample_prose(uint64_t seed, size_t bytes);

struct WorstCase {
  std::string name;
  std::string text;
};
/// Texts of `bytes` bytes each that make a careless tokenizer slow.
std::vector<WorstCase> worst_cases(uint64_t seed, size_t bytes);

}  // namespace sluice::apps
