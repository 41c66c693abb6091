// Random texts of the kinds that tokenizers stumble over.
#pragma once

#include <random>
#include <string>

namespace sluice::testing {

/// Valid UTF-8 of up to `max_characters` characters: letters, digits, white space of all sorts, marks,
/// Hangul, CJK, emoji, any code point at all.
std::string random_text(std::mt19937& random, int max_characters);

/// Any bytes, mostly parts of UTF-8.
std::string random_bytes(std::mt19937& random, int max_bytes);

}  // namespace sluice::testing
