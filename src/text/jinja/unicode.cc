// Code points and their properties, by utf8proc.
#include "text/jinja/unicode.h"

#include <utf8proc.h>

#include <algorithm>

namespace sluice::jinja {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

utf8proc_category_t category_of(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

// The one character of the Latin script whose upper case is two characters; utf8proc's simple mapping keeps
// it.
constexpr char32_t kSharpS = 0xDF;

}  // namespace

char32_t next_code_point(std::string_view text, size_t& position) {
  const auto first = static_cast<unsigned char>(text[position]);
  if (first < 0x80) {
    ++position;
    return first;
  }
  utf8proc_int32_t code_point = -1;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + position;
  const auto used =
      utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size() - position), &code_point);
  if (used <= 0 || code_point < 0) {
    ++position;
    return kReplacement;
  }
  position += static_cast<size_t>(used);
  return static_cast<char32_t>(code_point);
}

void append_code_point(std::string& text, char32_t code_point) {
  if (code_point < 0x80) {
    text += static_cast<char>(code_point);
    return;
  }
  const bool surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
  if (surrogate || code_point > 0x10FFFF) code_point = kReplacement;
  utf8proc_uint8_t bytes[4];
  const auto size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code_point), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
}

std::string valid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  for (size_t i = 0; i < text.size();) append_code_point(valid, next_code_point(text, i));
  return valid;
}

int64_t count_code_points(std::string_view valid_text) {
  return std::count_if(valid_text.begin(), valid_text.end(),
                       [](char byte) { return !is_continuation(byte); });
}

size_t byte_offset(std::string_view valid_text, int64_t index) {
  size_t position = 0;
  for (int64_t seen = 0; position < valid_text.size(); ++position) {
    if (is_continuation(valid_text[position])) continue;
    if (seen++ == index) return position;
  }
  return valid_text.size();
}

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1C && c <= 0x1F);
  if (c == 0x85) return true;
  const auto category = category_of(c);
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

bool is_printable(char32_t c) {
  if (c == ' ') return true;
  switch (category_of(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    default:
      return true;
  }
}

bool is_letter(char32_t c) {
  switch (category_of(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return true;
    default:
      return false;
  }
}

bool is_digit(char32_t c) { return category_of(c) == UTF8PROC_CATEGORY_ND; }

bool is_upper(char32_t c) { return category_of(c) == UTF8PROC_CATEGORY_LU; }

bool is_lower(char32_t c) { return category_of(c) == UTF8PROC_CATEGORY_LL; }

bool is_cased(char32_t c) { return is_upper(c) || is_lower(c) || category_of(c) == UTF8PROC_CATEGORY_LT; }

std::string to_upper(std::string_view text) {
  std::string upper;
  upper.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const char32_t c = next_code_point(text, i);
    if (c == kSharpS) {
      upper += "SS";
    } else {
      append_code_point(upper, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
    }
  }
  return upper;
}

std::string to_lower(std::string_view text) {
  std::string lower;
  lower.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<utf8proc_int32_t>(next_code_point(text, i));
    append_code_point(lower, static_cast<char32_t>(utf8proc_tolower(c)));
  }
  return lower;
}

std::string to_capitalized(std::string_view text) {
  if (text.empty()) return {};
  std::string result;
  size_t position = 0;
  const char32_t first = next_code_point(text, position);
  if (first == kSharpS) {
    result = "Ss";
  } else {
    append_code_point(result, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(first))));
  }
  return result + to_lower(text.substr(position));
}

}  // namespace sluice::jinja
