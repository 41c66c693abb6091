// Turns tokens back into text, one by one.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "text/decode_state.h"
#include "text/tokenizer_spec.h"

namespace sluice {

/// The decoder stage. Text does not depend on how the ids come: all at once or one at a time.
///
/// Byte-level: the bytes of all tokens are one UTF-8 text, repaired. Byte fallback: a run of byte tokens is
/// text if the whole run is UTF-8, else one U+FFFD for each byte; so a run is known only when another token,
/// or the end, follows it.
class TokenDecoder {
 public:
  explicit TokenDecoder(DecoderSpec spec) : spec_(std::move(spec)) {}

  /// Appends the text that became complete with a token. Byte-level: `token` is the bytes it stands for; else
  /// as written.
  void push(std::string_view token, DecodeState& state, std::string& out) const;
  /// Appends what is left, and makes `state` new.
  void finish(DecodeState& state, std::string& out) const;

  /// What the token stands for on its own, inside a text.
  std::string bytes_of(std::string_view token) const;

 private:
  void push_text(std::string_view token, DecodeState& state, std::string& out) const;
  void push_byte(char byte, DecodeState& state, std::string& out) const;
  void end_run(DecodeState& state, std::string& out) const;
  void append(std::string_view text, DecodeState& state, std::string& out) const;
  std::string replaced(std::string_view token, bool is_first) const;

  DecoderSpec spec_;
};

}  // namespace sluice
