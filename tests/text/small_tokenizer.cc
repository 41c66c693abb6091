// Writes the JSON of small tokenizers.
#include "text/small_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sluice::testing {
namespace {

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

std::string latin_or_extended(int code) {
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
}

}  // namespace

const std::vector<std::string>& byte_alphabet() {
  static const std::vector<std::string> alphabet = [] {
    std::vector<std::string> characters;
    int next = 256;
    for (int byte = 0; byte < 256; ++byte) {
      const bool shown = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
      characters.push_back(latin_or_extended(shown ? byte : next++));
    }
    return characters;
  }();
  return alphabet;
}

std::string in_alphabet(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += byte_alphabet()[static_cast<uint8_t>(byte)];
  return text;
}

std::vector<std::string> SmallTokenizer::vocabulary() const {
  std::vector<std::string> tokens;
  const auto add = [&](const std::string& token) {
    if (std::find(tokens.begin(), tokens.end(), token) == tokens.end()) tokens.push_back(token);
  };
  if (byte_alphabet) tokens = testing::byte_alphabet();
  for (const std::string& token : base_tokens) add(token);
  for (const auto& [left, right] : merges) add(left + right);
  return tokens;
}

std::string SmallTokenizer::json() const {
  std::string vocab, lines;
  TokenId id = 0;
  for (const std::string& token : vocabulary()) {
    vocab += (id == 0 ? "" : ",") + quoted(token) + ":" + std::to_string(id);
    ++id;
  }
  for (const auto& [left, right] : merges) {
    if (!lines.empty()) lines += ',';
    lines += merges_as_pairs ? '[' + quoted(left) + ',' + quoted(right) + ']' : quoted(left + ' ' + right);
  }
  return R"({"version": "1.0", "added_tokens": )" + added_tokens + R"(, "normalizer": )" + normalizer +
         R"(, "pre_tokenizer": )" + pre_tokenizer + R"(, "decoder": )" + decoder +
         R"(, "model": {"type": "BPE", )" + model_options + R"(, "vocab": {)" + vocab + R"(}, "merges": [)" +
         lines + "]}}";
}

Tokenizer SmallTokenizer::build() const { return Tokenizer::parse(json(), "small.json"); }

std::string added_token(TokenId id, const std::string& content, const std::string& flags) {
  return R"({"id": )" + std::to_string(id) + R"(, "content": )" + quoted(content) +
         (flags.empty() ? "" : ", " + flags) + '}';
}

std::string split_by(const std::string& regex) {
  return R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": ")" + regex +
         R"("}, "behavior": "Isolated", "invert": false},
             {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})";
}

std::string word_split() {
  return split_by(
      R"((?i:'[sdmt]|'ll|'ve|'re)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*)"
      R"(|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+)");
}

SmallTokenizer byte_fallback_tokenizer(const std::vector<std::string>& characters) {
  SmallTokenizer tokenizer;
  tokenizer.byte_alphabet = false;
  for (int byte = 0; byte < 256; ++byte) {
    const char* digits = "0123456789ABCDEF";
    tokenizer.base_tokens.push_back(std::string("<0x") + digits[byte >> 4] + digits[byte & 15] + '>');
  }
  tokenizer.base_tokens.insert(tokenizer.base_tokens.end(), characters.begin(), characters.end());
  tokenizer.normalizer = R"({"type": "Replace", "pattern": {"String": " "}, "content": "▁"})";
  tokenizer.pre_tokenizer = "null";
  tokenizer.decoder = R"({"type": "Sequence", "decoders": [
      {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]})";
  tokenizer.model_options = R"("byte_fallback": true)";
  return tokenizer;
}

}  // namespace sluice::testing
