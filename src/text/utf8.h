// UTF-8: validity, code points, and the repair of invalid bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

bool is_valid_utf8(std::string_view bytes);

/// Appends `bytes` to `out`, each maximal invalid part (Unicode 15, section 3.9) as one U+FFFD. Returns how
/// many bytes were consumed: all of them if `at_end`, else all but an incomplete character (at most 3 bytes)
/// at the end.
size_t append_repaired(std::string& out, std::string_view bytes, bool at_end);

/// Bytes of the character that starts with `lead`, the first byte of a valid character.
inline size_t utf8_length(char lead) {
  const auto byte = static_cast<uint8_t>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/// The code point at `position` of valid UTF-8; `position` moves behind it.
inline char32_t next_code_point(std::string_view text, size_t& position) {
  const auto lead = static_cast<uint8_t>(text[position]);
  if (lead < 0x80) return static_cast<uint8_t>(text[position++]);
  const size_t length = utf8_length(text[position]);
  char32_t code = lead & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) code = code << 6 | (static_cast<uint8_t>(text[position + i]) & 0x3Fu);
  position += length;
  return code;
}

void append_code_point(std::string& out, char32_t code);

/// Unicode's White_Space property.
bool is_white_space(char32_t code);
/// A character of a word as in `\w` of UTS 18: alphabetic, mark, decimal digit, connector, join control.
bool is_word_character(char32_t code);

}  // namespace sluice
