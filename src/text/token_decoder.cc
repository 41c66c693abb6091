// The decoder stage, for whole texts and for streams alike.
#include "text/token_decoder.h"

#include <optional>

#include "text/utf8.h"

namespace sluice {
namespace {

std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  if (lower >= 'a' && lower <= 'f') return lower - 'a' + 10;
  return std::nullopt;
}

// The byte that a token of the form <0x0A> stands for.
std::optional<char> fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  const std::optional<int> high = hex_digit(token[3]), low = hex_digit(token[4]);
  if (!high || !low) return std::nullopt;
  return static_cast<char>(*high << 4 | *low);
}

}  // namespace

std::string TokenDecoder::replaced(std::string_view token, bool is_first) const {
  std::string text(token);
  for (const auto& [from, to] : spec_.replaces) {
    const std::string_view with = is_first && spec_.drop_in_first ? std::string_view() : std::string_view(to);
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + with.size())) {
      text.replace(at, from.size(), with);
    }
  }
  return text;
}

std::string TokenDecoder::bytes_of(std::string_view token) const {
  if (spec_.byte_level) return std::string(token);
  std::string text = replaced(token, false);
  const std::optional<char> byte = spec_.byte_fallback ? fallback_byte(text) : std::nullopt;
  return byte ? std::string(1, *byte) : text;
}

void TokenDecoder::push(std::string_view token, DecodeState& state, std::string& out) const {
  if (!spec_.byte_level) return push_text(token, state, out);
  if (state.pending.empty()) {
    const size_t consumed = append_repaired(out, token, false);
    state.pending = token.substr(consumed);
  } else {
    state.pending += token;
    state.pending.erase(0, append_repaired(out, state.pending, false));
  }
}

void TokenDecoder::push_text(std::string_view token, DecodeState& state, std::string& out) const {
  const std::string text = replaced(token, state.is_first);
  state.is_first = false;
  if (const std::optional<char> byte = spec_.byte_fallback ? fallback_byte(text) : std::nullopt) {
    push_byte(*byte, state, out);
    return;
  }
  end_run(state, out);
  append(text, state, out);
}

void TokenDecoder::push_byte(char byte, DecodeState& state, std::string& out) const {
  if (state.run_is_broken) return append(kReplacementCharacter, state, out);
  state.pending += byte;
  // Only the last few bytes are new: a character, a part of one, or the end of all hope for this run.
  const std::string_view tail = std::string_view(state.pending).substr(state.whole_bytes);
  std::string characters;
  const size_t consumed = append_repaired(characters, tail, false);
  if (tail.substr(0, consumed) == characters) {
    state.whole_bytes += consumed;
    return;
  }
  for (size_t i = 0; i < state.pending.size(); ++i) append(kReplacementCharacter, state, out);
  state.pending.clear();
  state.whole_bytes = 0;
  state.run_is_broken = true;
}

void TokenDecoder::end_run(DecodeState& state, std::string& out) const {
  state.run_is_broken = false;
  if (state.pending.empty()) return;
  if (state.whole_bytes == state.pending.size()) {
    append(state.pending, state, out);
  } else {
    for (size_t i = 0; i < state.pending.size(); ++i) append(kReplacementCharacter, state, out);
  }
  state.pending.clear();
  state.whole_bytes = 0;
}

void TokenDecoder::append(std::string_view text, DecodeState& state, std::string& out) const {
  while (state.stripped >= 0 && !text.empty()) {
    if (state.stripped == spec_.strip_at_start || !text.starts_with(spec_.strip_content)) {
      state.stripped = -1;
    } else {
      text.remove_prefix(spec_.strip_content.size());
      ++state.stripped;
    }
  }
  out += text;
}

void TokenDecoder::finish(DecodeState& state, std::string& out) const {
  if (spec_.byte_level) {
    append_repaired(out, state.pending, true);
  } else {
    end_run(state, out);
  }
  state = {};
}

}  // namespace sluice
