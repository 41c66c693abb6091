// Tokens inside tags. Strings are decoded as Python's unicode_escape does.
#include "text/jinja/tag_lexer.h"

#include <array>
#include <charconv>
#include <cstdlib>

#include "base/error.h"
#include "text/jinja/unicode.h"

namespace sluice::jinja {
namespace {

bool is_decimal(char c) { return c >= '0' && c <= '9'; }
bool is_binary(char c) { return c == '0' || c == '1'; }
bool is_octal(char c) { return c >= '0' && c <= '7'; }
bool is_hex(char c) { return is_decimal(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool continues_name(char c) { return starts_name(c) || is_decimal(c); }

std::string without_underscores(std::string_view digits) {
  std::string plain;
  for (const char c : digits) {
    if (c != '_') plain += c;
  }
  return plain;
}

// Reads up to `count` digits of `base` at `position`; false if fewer than `minimum` are there.
bool read_code(std::string_view text, size_t& position, size_t minimum, size_t count, int base,
               char32_t& code) {
  const auto accepts = base == 8 ? is_octal : is_hex;
  size_t end = position;
  while (end < text.size() && end - position < count && accepts(text[end])) ++end;
  if (end - position < minimum) return false;
  unsigned value = 0;
  std::from_chars(text.data() + position, text.data() + end, value, base);
  code = value;
  position = end;
  return true;
}

// The character that a one-letter escape stands for, or '\0' for none.
char simple_escape(char letter) {
  switch (letter) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'v':
      return '\v';
    case '\\':
    case '\'':
    case '"':
      return letter;
    default:
      return '\0';
  }
}

// Appends the escape whose letter is at `position`; false if it is malformed.
bool append_escape(std::string_view text, size_t& position, std::string& out) {
  const char letter = text[position];
  if (const char simple = simple_escape(letter); simple != '\0') {
    out += simple;
    ++position;
    return true;
  }
  char32_t code = 0;
  bool well_formed = true;
  if (letter == '\n') {
    ++position;
    return true;
  }
  if (is_octal(letter)) {
    read_code(text, position, 1, 3, 8, code);
  } else if (letter == 'x' || letter == 'u' || letter == 'U') {
    const size_t digits = letter == 'x' ? 2 : letter == 'u' ? 4 : 8;
    well_formed = read_code(text, ++position, digits, digits, 16, code) && code <= 0x10FFFF;
  } else if (letter == 'N') {
    return false;
  } else {
    out += '\\';  // an unknown escape stands for itself
    return true;
  }
  if (well_formed) append_code_point(out, code);
  return well_formed;
}

}  // namespace

Token TagCursor::make(TokenKind kind, size_t position) {
  for (; counted_ < position; ++counted_) {
    if (source_[counted_] != '\n') continue;
    ++line_;
    line_start_ = counted_ + 1;
  }
  Token token;
  token.kind = kind;
  token.line = line_;
  token.column = static_cast<int>(position - line_start_) + 1;
  return token;
}

Token TagCursor::next() {
  if (position_ >= source_.size()) {
    const Token place = make(TokenKind::kEnd, position_);
    fail_syntax(place.line, place.column, "the template ends inside a tag");
  }
  const char c = source_[position_];
  if (is_decimal(c)) return read_number();
  if (starts_name(c)) return read_name();
  if (c == '"' || c == '\'') return read_string();
  return read_operator();
}

Token TagCursor::read_name() {
  Token token = make(TokenKind::kName, position_);
  size_t end = position_;
  while (end < source_.size() && continues_name(source_[end])) ++end;
  token.text = source_.substr(position_, end - position_);
  position_ = end;
  return token;
}

// End of a run of digits that may be separated by single underscores; `position` if it does not start with a
// digit.
size_t TagCursor::digits_from(size_t position, bool (*accepts)(char)) const {
  size_t end = position;
  while (end < source_.size()) {
    const bool separator =
        source_[end] == '_' && end > position && end + 1 < source_.size() && accepts(source_[end + 1]);
    if (!separator && !accepts(source_[end])) break;
    ++end;
  }
  return end;
}

Token TagCursor::read_number() {
  Token token = make(TokenKind::kInteger, position_);
  const size_t start = position_;
  const auto at = [&](size_t p) { return p < source_.size() ? source_[p] : '\0'; };
  const char prefix = source_[start] == '0' ? static_cast<char>(at(start + 1) | 0x20) : '\0';
  int base = 10;
  size_t first = start;
  if (prefix == 'x' || prefix == 'o' || prefix == 'b') {
    base = prefix == 'x' ? 16 : prefix == 'o' ? 8 : 2;
    first = start + 2;
  }
  size_t end = digits_from(first, base == 16  ? is_hex
                                  : base == 8 ? is_octal
                                  : base == 2 ? is_binary
                                              : is_decimal);
  bool real = false;
  // After a dot a number is an index (`row.0.1`), never the start of a fraction.
  if (base == 10 && (start == 0 || source_[start - 1] != '.')) {
    if (at(end) == '.' && is_decimal(at(end + 1))) {
      real = true;
      end = digits_from(end + 1, is_decimal);
    }
    const size_t sign = at(end + 1) == '+' || at(end + 1) == '-' ? 1 : 0;
    if ((at(end) | 0x20) == 'e' && is_decimal(at(end + 1 + sign))) {
      real = true;
      end = digits_from(end + 1 + sign, is_decimal);
    }
  }
  if (!real && base == 10 && source_[start] == '0') {  // a number with leading zeros is two tokens
    end = digits_from(start, [](char c) { return c == '0'; });
  }
  const std::string digits = without_underscores(source_.substr(first, end - first));
  position_ = end;
  if (real) {
    token.kind = TokenKind::kFloat;
    token.real = std::strtod(digits.c_str(), nullptr);
    return token;
  }
  const auto [last, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), token.integer, base);
  if (error == std::errc::result_out_of_range) {
    throw Error(ErrorCode::kUnsupported,
                "line " + std::to_string(token.line) + ": the integer " + digits + " has more than 64 bits");
  }
  if (error != std::errc()) fail_syntax(token.line, token.column, "a number without digits");
  return token;
}

Token TagCursor::read_string() {
  Token token = make(TokenKind::kString, position_);
  const char quote = source_[position_];
  size_t p = position_ + 1;
  while (p < source_.size() && source_[p] != quote) {
    if (source_[p] != '\\') {
      token.text += source_[p++];
      continue;
    }
    if (++p >= source_.size()) break;
    if (!append_escape(source_, p, token.text)) {
      fail_syntax(token.line, token.column, "the string holds an escape that can't be decoded");
    }
  }
  if (p >= source_.size()) fail_syntax(token.line, token.column, "the string is not closed");
  position_ = p + 1;
  return token;
}

Token TagCursor::read_operator() {
  static constexpr std::array<std::string_view, 6> kDouble = {"//", "**", "==", "!=", ">=", "<="};
  static constexpr std::string_view kSingle = "+-/*%~[](){}><=.:|,;";
  Token token = make(TokenKind::kOperator, position_);
  const std::string_view two = source_.substr(position_, 2);
  for (const std::string_view candidate : kDouble) {
    if (two == candidate) token.text = candidate;
  }
  if (token.text.empty() && kSingle.find(two[0]) != std::string_view::npos) token.text = two.substr(0, 1);
  if (token.text.empty()) {
    size_t end = position_;
    next_code_point(source_, end);
    fail_syntax(token.line, token.column,
                "unexpected character '" + std::string(source_.substr(position_, end - position_)) + "'");
  }
  track_bracket(token);
  position_ += token.text.size();
  return token;
}

void TagCursor::track_bracket(const Token& token) {
  switch (token.text[0]) {
    case '(':
      brackets_ += ')';
      return;
    case '[':
      brackets_ += ']';
      return;
    case '{':
      brackets_ += '}';
      return;
    case ')':
    case ']':
    case '}':
      break;
    default:
      return;
  }
  if (brackets_.empty()) fail_syntax(token.line, token.column, "unexpected '" + token.text + "'");
  if (brackets_.back() != token.text[0]) {
    fail_syntax(token.line, token.column,
                "unexpected '" + token.text + "', expected '" + brackets_.back() + "'");
  }
  brackets_.pop_back();
}

}  // namespace sluice::jinja
