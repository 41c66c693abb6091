// One function an expression: the end of its match at a place. Alternatives are tried in the expression's
// order.
#include "text/piece_scanner.h"

#include <array>
#include <cstdint>
#include <utility>

#include "text/utf8.h"

namespace sluice {
namespace {

enum Class : uint8_t {
  kUpper = 1,
  kLower = 2,
  kDigit = 4,
  kSign = 8,  // \p{P} and \p{S}
  kLineEnd = 16,
  kBlank = 32,  // \s but for line ends
  kControl = 64,
  kBeyond = 128,  // ASCII
};
constexpr uint8_t kLetter = kUpper | kLower;
constexpr uint8_t kSpace = kLineEnd | kBlank;
constexpr uint8_t kNoWord = kSign | kControl;  // [^\s\p{L}\p{N}]

constexpr uint8_t class_of(int byte) {
  if (byte >= 0x80) return kBeyond;
  if (byte >= 'A' && byte <= 'Z') return kUpper;
  if (byte >= 'a' && byte <= 'z') return kLower;
  if (byte >= '0' && byte <= '9') return kDigit;
  if (byte == '\r' || byte == '\n') return kLineEnd;
  if (byte == ' ' || (byte >= 0x09 && byte <= 0x0D)) return kBlank;
  return byte < 0x20 || byte == 0x7F ? kControl : kSign;
}

constexpr std::array<uint8_t, 256> kClasses = [] {
  std::array<uint8_t, 256> classes{};
  for (int byte = 0; byte < 256; ++byte) classes[static_cast<size_t>(byte)] = class_of(byte);
  return classes;
}();

// What a match function returns in place of an end. Matches are never empty, so none ends at 0.
constexpr size_t kNoMatch = 0;
constexpr size_t kUndecided = std::string_view::npos;

class Text {
 public:
  explicit Text(std::string_view text) : text_(text) {}
  size_t size() const { return text_.size(); }
  char operator[](size_t i) const { return text_[i]; }
  uint8_t class_at(size_t i) const {  // 0 at the end
    return i < text_.size() ? kClasses[static_cast<uint8_t>(text_[i])] : uint8_t{0};
  }
  bool is(size_t i, char c) const { return i < text_.size() && text_[i] == c; }
  size_t run(size_t i, uint8_t classes) const {
    while ((class_at(i) & classes) != 0) ++i;
    return i;
  }
  // The end of a run that a character beyond ASCII could prolong.
  size_t decided_run(size_t i, uint8_t classes) const {
    const size_t end = run(i, classes);
    return class_at(end) == kBeyond ? kUndecided : end;
  }

 private:
  std::string_view text_;
};

// 's|'t|'re|'ve|'m|'ll|'d behind the apostrophe at `i`.
template <bool kAnyCase>
size_t match_contraction(const Text& text, size_t i) {
  const uint8_t next = text.class_at(i + 1);
  if (next == kBeyond) return kUndecided;  // U+017F is an s in any case
  if ((next & (kAnyCase ? kLetter : uint8_t{kLower})) == 0) return kNoMatch;
  const auto lower = [&](size_t at) {
    return static_cast<char>(kAnyCase && (text.class_at(at) & kLetter) != 0 ? text[at] | 0x20 : text[at]);
  };
  const char first = lower(i + 1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return i + 2;
  if (i + 2 == text.size()) return kNoMatch;
  const char second = lower(i + 2);
  const bool matches = second == 'e' ? first == 'r' || first == 'v' : first == 'l' && second == 'l';
  return matches ? i + 3 : kNoMatch;
}

// \p{N}{1,most}
size_t match_digits(const Text& text, size_t i, size_t most) {
  size_t end = i + 1;
  while (end < i + most && (text.class_at(end) & kDigit) != 0) ++end;
  return end < i + most && text.class_at(end) == kBeyond ? kUndecided : end;
}

// \s*[\r\n]+ (if kLineEnds), \s+(?!\S), \s+
template <bool kLineEnds>
size_t match_space(const Text& text, size_t i) {
  const size_t end = text.decided_run(i, kSpace);
  if (end == kUndecided || end == i) return end == i ? kNoMatch : kUndecided;
  if (kLineEnds) {
    for (size_t last = end; last > i; --last) {
      if (text.class_at(last - 1) == kLineEnd) return last;
    }
  }
  return end < text.size() && end - i > 1 ? end - 1 : end;
}

// " ?[signs]+[\r\n]*"; `with_slash`: [\r\n/]*
size_t match_signs(const Text& text, size_t i, uint8_t signs, bool with_slash) {
  const size_t begin = text.is(i, ' ') ? i + 1 : i;
  if (text.class_at(begin) == kBeyond) return kUndecided;
  size_t end = text.decided_run(begin, signs);
  if (end == kUndecided || end == begin) return end == begin ? kNoMatch : kUndecided;
  while (text.class_at(end) == kLineEnd || (with_slash && text.is(end, '/'))) ++end;
  return end;
}

// The behaviours of GPT-4's expression, with \p{N} one by one or in threes.
template <size_t kDigits>
size_t match_cl100k(const Text& text, size_t i) {
  const uint8_t first = text.class_at(i);
  if (first == kBeyond) return kUndecided;
  if (text[i] == '\'') {
    if (const size_t end = match_contraction<true>(text, i); end != kNoMatch) return end;
  }
  if ((first & kLetter) != 0) return text.decided_run(i, kLetter);
  if (first == kDigit) return match_digits(text, i, kDigits);
  if (first != kLineEnd) {
    const uint8_t second = text.class_at(i + 1);
    if (second == kBeyond) return kUndecided;
    if ((second & kLetter) != 0) return text.decided_run(i + 1, kLetter);
  }
  const size_t end = match_signs(text, i, kNoWord, false);
  return end != kNoMatch ? end : match_space<true>(text, i);
}

// [upper]*[lower]+(contraction)? or [upper]+[lower]*(contraction)?: in ASCII both are upper, then lower.
size_t match_cased_word(const Text& text, size_t i) {
  const size_t end = text.decided_run(text.run(i, kUpper), kLower);
  if (end == kUndecided || !text.is(end, '\'')) return end;
  const size_t with_contraction = match_contraction<true>(text, end);
  return with_contraction == kNoMatch ? end : with_contraction;
}

size_t match_o200k(const Text& text, size_t i) {
  const uint8_t first = text.class_at(i);
  if (first == kBeyond) return kUndecided;
  if ((first & kLetter) != 0) return match_cased_word(text, i);
  if (first == kDigit) return match_digits(text, i, 3);
  if (first != kLineEnd) {
    const uint8_t second = text.class_at(i + 1);
    if (second == kBeyond) return kUndecided;
    if ((second & kLetter) != 0) return match_cased_word(text, i + 1);
  }
  const size_t end = match_signs(text, i, kNoWord, true);
  return end != kNoMatch ? end : match_space<true>(text, i);
}

size_t match_gpt2(const Text& text, size_t i) {
  if (text[i] == '\'') {
    if (const size_t end = match_contraction<false>(text, i); end != kNoMatch) return end;
  }
  const size_t begin = text[i] == ' ' ? i + 1 : i;
  const uint8_t first = text.class_at(begin);
  if (first == kBeyond) return kUndecided;
  if ((first & kLetter) != 0) return text.decided_run(begin, kLetter);
  if (first == kDigit) return text.decided_run(begin, kDigit);
  if ((first & kNoWord) != 0) return text.decided_run(begin, kNoWord);
  return match_space<false>(text, i);
}

size_t match_deepseek_number(const Text& text, size_t i) {
  const uint8_t first = text.class_at(i);
  if (first == kBeyond) return kUndecided;
  return first == kDigit ? match_digits(text, i, 3) : kNoMatch;
}

// The one expression that names code points, so that it is decided beyond ASCII too.
size_t match_deepseek_cjk(const Text& text, size_t i) {
  size_t end = i;
  while (text.class_at(end) == kBeyond && utf8_length(text[end]) == 3) {
    const auto byte = [&](size_t k) { return static_cast<uint32_t>(static_cast<uint8_t>(text[end + k])); };
    const uint32_t code = (byte(0) & 0x0Fu) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
    const bool matches = (code >= 0x4E00 && code <= 0x9FA5) || (code >= 0x3040 && code <= 0x30FF);
    if (!matches) break;
    end += 3;
  }
  return end == i ? kNoMatch : end;
}

size_t match_deepseek_word(const Text& text, size_t i) {
  const uint8_t first = text.class_at(i);
  if (first == kBeyond) return kUndecided;
  const uint8_t second = text.class_at(i + 1);
  if (first == kSign && (second & kLetter) != 0) return text.run(i + 1, kLetter);  // [A-Za-z]+ ends anywhere
  if ((first & kLetter) != 0) return text.decided_run(i, kLetter);
  if ((first & (kSign | kLineEnd)) == 0) {
    if (second == kBeyond) return kUndecided;
    if ((second & kLetter) != 0) return text.decided_run(i + 1, kLetter);
  }
  const size_t end = match_signs(text, i, kSign, false);
  return end != kNoMatch ? end : match_space<true>(text, i);
}

template <size_t (*kMatchAt)(const Text&, size_t)>
ScanResult scan(std::string_view characters, size_t from, Regex::Match& match) {
  const Text text(characters);
  for (size_t i = from; i < text.size(); ++i) {
    const size_t end = kMatchAt(text, i);
    match = {i, end};
    if (end == kUndecided) return ScanResult::kUndecided;
    if (end != kNoMatch) return ScanResult::kMatch;
  }
  return ScanResult::kNone;
}

constexpr std::array<std::pair<std::string_view, PieceScanner>, 7> kScanners = {{
    {kGpt2Pieces, scan<match_gpt2>},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
     R"(|\s*[\r\n]+|\s+(?!\S)|\s+)",
     scan<match_cl100k<1>>},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
     R"(|\s*[\r\n]+|\s+(?!\S)|\s+)",
     scan<match_cl100k<3>>},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     scan<match_o200k>},
    {R"(\p{N}{1,3})", scan<match_deepseek_number>},
    {"[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", scan<match_deepseek_cjk>},
    // Its line ends are the characters themselves, not escapes.
    {R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^)"
     "\r\n"
     R"(\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[)"
     "\r\n"
     R"(]*|\s*[)"
     "\r\n"
     R"(]+|\s+(?!\S)|\s+)",
     scan<match_deepseek_word>},
}};

}  // namespace

PieceScanner find_piece_scanner(std::string_view pattern) {
  for (const auto& [known, scanner] : kScanners) {
    if (known == pattern) return scanner;
  }
  return nullptr;
}

}  // namespace sluice
