// Decoding and repair of UTF-8; character classes from utf8proc.
#include "text/utf8.h"

#include <simdjson.h>
#include <utf8proc.h>

namespace sluice {
namespace {

enum class Outcome { kCharacter, kInvalid, kIncomplete };
struct Sequence {
  Outcome outcome;
  size_t bytes;
};

// Table 3-7 of the Unicode standard: only the second byte's range depends on the first.
Sequence classify(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const uint8_t lead = at(0);
  if (lead < 0x80) return {Outcome::kCharacter, 1};
  if (lead < 0xC2 || lead > 0xF4) return {Outcome::kInvalid, 1};
  const size_t length = utf8_length(bytes[0]);
  uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < length; ++i) {
    if (i == bytes.size()) return {Outcome::kIncomplete, i};
    if (at(i) < low || at(i) > high) return {Outcome::kInvalid, i};
    low = 0x80;
    high = 0xBF;
  }
  return {Outcome::kCharacter, length};
}

}  // namespace

bool is_valid_utf8(std::string_view bytes) { return simdjson::validate_utf8(bytes.data(), bytes.size()); }

size_t append_repaired(std::string& out, std::string_view bytes, bool at_end) {
  if (is_valid_utf8(bytes)) {
    out += bytes;
    return bytes.size();
  }
  size_t position = 0;
  while (position < bytes.size()) {
    const Sequence sequence = classify(bytes.substr(position));
    if (sequence.outcome == Outcome::kIncomplete && !at_end) return position;
    if (sequence.outcome == Outcome::kCharacter) {
      out += bytes.substr(position, sequence.bytes);
    } else {
      out += kReplacementCharacter;
    }
    position += sequence.bytes;
  }
  return position;
}

void append_code_point(std::string& out, char32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  const int continuations = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  const uint32_t lead_mark = continuations == 1 ? 0xC0 : continuations == 2 ? 0xE0 : 0xF0;
  out += static_cast<char>(lead_mark | code >> (6 * continuations));
  for (int i = continuations - 1; i >= 0; --i) out += static_cast<char>(0x80u | (code >> (6 * i) & 0x3Fu));
}

bool is_white_space(char32_t code) {
  switch (code) {
    case 0x20:
    case 0x85:
    case 0xA0:
    case 0x1680:
    case 0x2028:
    case 0x2029:
    case 0x202F:
    case 0x205F:
    case 0x3000:
      return true;
    default:
      return (code >= 0x09 && code <= 0x0D) || (code >= 0x2000 && code <= 0x200A);
  }
}

bool is_word_character(char32_t code) {
  if (code == 0x200C || code == 0x200D) return true;
  if (code >= 0x24B6 && code <= 0x24E9) return true;  // circled letters: So, yet alphabetic
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return false;
  }
}

}  // namespace sluice
