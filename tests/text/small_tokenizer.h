// Small tokenizer.json texts for tests: a vocabulary that follows from the merges, and stages as the test
// wants them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "text/tokenizer.h"

namespace sluice::testing {

struct SmallTokenizer {
  using Merges = std::vector<std::pair<std::string, std::string>>;  // in the byte alphabet

  // Each a JSON value.
  std::string normalizer = "null";
  std::string pre_tokenizer = R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": false})";
  std::string decoder = R"({"type": "ByteLevel"})";
  std::string added_tokens = "[]";
  std::string model_options = R"("unk_token": null)";
  bool byte_alphabet = true;             // ids 0 to 255 are the bytes in the alphabet's order
  std::vector<std::string> base_tokens;  // follow them
  Merges merges;                         // their results follow, unless they exist
  bool merges_as_pairs = true;

  std::vector<std::string> vocabulary() const;  // by id
  std::string json() const;
  Tokenizer build() const;
};

/// {"id": id, "content": content, flags}; `flags` as in R"("lstrip": true)".
std::string added_token(TokenId id, const std::string& content, const std::string& flags = "");

/// The 256 characters of the byte alphabet, by byte.
const std::vector<std::string>& byte_alphabet();
/// `bytes` as a vocabulary writes them.
std::string in_alphabet(std::string_view bytes);

/// The pre-tokenizer that splits by `regex` (a JSON string without its quotes) and then goes byte by byte.
std::string split_by(const std::string& regex);

/// Splits as many published byte-level tokenizers do: contractions, words, digits one by one, signs, white
/// space.
std::string word_split();

/// Settings like those of a model with byte fallback: "▁" for spaces, "<0x00>" to "<0xFF>" first, then
/// `characters`.
SmallTokenizer byte_fallback_tokenizer(const std::vector<std::string>& characters);

}  // namespace sluice::testing
