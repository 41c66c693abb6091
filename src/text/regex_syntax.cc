// Oniguruma's syntax to PCRE2's: the two agree but for character classes and a few operators, which are
// checked here.
#include "base/error.h"
#include "text/regex.h"

namespace sluice {
namespace {

class Translator {
 public:
  Translator(std::string_view pattern, const std::string& where) : pattern_(pattern), where_(where) {}

  std::string run() {
    while (position_ < pattern_.size()) step();
    return std::move(out_);
  }

 private:
  void step() {
    const char c = pattern_[position_];
    if (c == '\\') {
      escape();
    } else if (in_class_) {
      class_character(c);
    } else {
      plain_character(c);
    }
  }

  void plain_character(char c) {
    if (c == '[') {
      in_class_ = true;
      copy(1);
      if (peek() == '^') copy(1);
      if (peek() == ']') refuse("a class that begins with ]");
      return;
    }
    if (c == '(' && pattern_.substr(position_).starts_with("(?")) return group();
    copy(1);
    // In Ruby's syntax x{1,3}+ repeats x{1,3}; in PCRE2 it forbids backtracking.
    if (c == '}' && peek() == '+') refuse("a + behind {n,m}");
  }

  void class_character(char c) {
    if (c == '[') refuse("a class inside a class");
    if (pattern_.substr(position_).starts_with("&&")) refuse("an intersection of classes");
    if (c == ']') in_class_ = false;
    copy(1);
  }

  // Only groups whose meaning is the same in both: (?: (?= (?! (?> (?<= (?<! (?i: (?i)
  void group() {
    const std::string_view rest = pattern_.substr(position_);
    for (const std::string_view known :
         {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!", "(?i:", "(?i)", "(?-i:"}) {
      if (rest.starts_with(known)) return copy(known.size());
    }
    refuse("the group " + std::string(rest.substr(0, 4)));
  }

  void escape() {
    if (position_ + 1 == pattern_.size()) refuse("a \\ at the end");
    const char c = pattern_[position_ + 1];
    switch (c) {
      // PCRE2 counts U+180E as a space, and fewer characters as parts of words.
      case 's':
        return replace("\\p{wspace}");
      case 'S':
        return replace("\\P{wspace}");
      case 'd':
        return replace("\\p{Nd}");
      case 'D':
        return replace("\\P{Nd}");
      case 'w':
        return replace(in_class_ ? kWord : '[' + std::string(kWord) + ']');
      case 'W':
        if (in_class_) refuse("\\W inside a class");
        return replace("[^" + std::string(kWord) + ']');
      case 'p':
      case 'P':
        return property();
      case 'u':
        return code_point();
      case 'x':
        if (pattern_.substr(position_).starts_with("\\x{")) return copy(2);
        if (!has_hex_digits(2, 2) || pattern_[position_ + 2] > '7') refuse("\\x without a code below 0x80");
        return copy(4);
      case 'r':
      case 'n':
      case 't':
      case 'f':
      case 'v':
        return c == 'v' ? replace("\\x0b") : copy(2);
      default:
        break;
    }
    const bool is_alphanumeric = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
    if (is_alphanumeric) refuse(std::string("\\") + c);
    copy(1 + (static_cast<unsigned char>(c) < 0x80 ? 1 : 0));
  }

  void property() {
    const size_t end = pattern_.find('}', position_);
    if (end == std::string_view::npos || pattern_[position_ + 2] != '{') refuse("a \\p without {...}");
    copy(end + 1 - position_);
  }

  void code_point() {
    if (!has_hex_digits(2, 4)) refuse("\\u without four hexadecimal digits");
    const std::string digits(pattern_.substr(position_ + 2, 4));
    out_ += "\\x{" + digits + '}';
    position_ += 6;
  }

  bool has_hex_digits(size_t offset, size_t count) const {
    const std::string_view digits = pattern_.substr(position_).substr(0, offset + count).substr(offset);
    return digits.size() == count &&
           digits.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
  }

  char peek() const { return position_ < pattern_.size() ? pattern_[position_] : '\0'; }

  void copy(size_t bytes) {
    out_ += pattern_.substr(position_, bytes);
    position_ += bytes;
  }

  void replace(std::string_view text) {
    out_ += text;
    position_ += 2;
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorCode::kUnsupported, where_ + ": regular expression: " + what + " at offset " +
                                             std::to_string(position_) + " is not supported");
  }

  static constexpr std::string_view kWord = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";

  std::string_view pattern_;
  const std::string& where_;
  std::string out_;
  size_t position_ = 0;
  bool in_class_ = false;
};

}  // namespace

std::string pcre2_from_oniguruma(std::string_view pattern, const std::string& where) {
  return Translator(pattern, where).run();
}

}  // namespace sluice
