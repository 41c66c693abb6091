// Tokenizers as `tokenizer.json` describes them (Hugging Face tokenizers): text to ids and back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/decode_state.h"

namespace sluice {

using TokenId = int32_t;

struct EncodeOptions {
  bool special_tokens = true;  // recognise added special tokens inside the text
};

/// An immutable tokenizer; encode and decode may be called from several threads.
class Tokenizer {
 public:
  /// Reads a tokenizer.json. Throws Error kNotFound, kBadFile or kUnsupported (unknown normalizer,
  /// pre-tokenizer or model: named).
  static Tokenizer load(const std::filesystem::path& tokenizer_json);
  /// As load, from the text of such a file; `file` is for messages.
  static Tokenizer parse(std::string_view json, const std::string& file);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  /// Ids of `text` (UTF-8; invalid bytes are encoded as U+FFFD). Adds no BOS or EOS.
  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const;
  /// Text of `ids`, special tokens kept unless told; bytes that form no character become U+FFFD. An id below
  /// vocab_size() that no token has gives nothing, as in the reference: a model may choose it.
  /// Throws Error kInvalidArgument for an id outside the vocabulary.
  std::string decode(std::span<const TokenId> ids, bool skip_special = false) const;
  /// The raw bytes that one id stands for (may be a part of a character).
  std::string bytes_of(TokenId id) const;

  std::optional<TokenId> id_of(
      std::string_view token) const;  // an added token or vocabulary entry, as written
  bool is_special(TokenId id) const;
  int64_t vocab_size() const;  // highest id + 1, added tokens included

 private:
  friend class StreamDecoder;
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Turns ids into text as they come and never emits a part of a UTF-8 character. All that push and finish
/// return, joined, is what Tokenizer::decode makes of the same ids.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special = true);
  /// Text that became complete with `id`; may be empty.
  /// Throws Error kInvalidArgument for an id outside the vocabulary.
  std::string push(TokenId id);
  /// What is left at the end; an incomplete character becomes U+FFFD. Afterwards a new text may begin.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_;
  DecodeState state_;
};

}  // namespace sluice
