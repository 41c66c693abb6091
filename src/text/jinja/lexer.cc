// The template level of the lexer: data, tags, comments and raw blocks. tag_lexer.cc reads what is inside the
// tags.
#include "text/jinja/lexer.h"

#include <algorithm>

#include "base/error.h"
#include "text/jinja/tag_lexer.h"
#include "text/jinja/unicode.h"

namespace sluice::jinja {
namespace {

// Newlines as \n, invalid UTF-8 replaced, and one newline at the end dropped, as Jinja does by default.
std::string normalize(std::string_view source) {
  const std::string valid = valid_utf8(source);
  std::string text;
  text.reserve(valid.size());
  for (size_t i = 0; i < valid.size(); ++i) {
    if (valid[i] == '\r') {
      if (i + 1 < valid.size() && valid[i + 1] == '\n') ++i;
      text += '\n';
    } else {
      text += valid[i];
    }
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

size_t skip_space(std::string_view text, size_t position) {
  while (position < text.size()) {
    size_t next = position;
    if (!is_space(next_code_point(text, next))) break;
    position = next;
  }
  return position;
}

std::string_view without_trailing_space(std::string_view text) {
  while (!text.empty()) {
    size_t start = text.size() - 1;
    while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
    size_t position = start;
    if (!is_space(next_code_point(text, position))) break;
    text = text.substr(0, start);
  }
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)), cursor_(source_) {}

  std::vector<Token> run() {
    while (cursor_.position() < source_.size()) next_piece();
    tokens_.push_back(cursor_.make(TokenKind::kEnd, cursor_.position()));
    return std::move(tokens_);
  }

 private:
  void next_piece();
  size_t find_tag(size_t from) const;
  void push_data(size_t begin, size_t end, char sign, bool strip_line);
  void lex_tag(TokenKind begin, TokenKind end);
  void skip_comment(size_t tag);
  bool lex_raw(size_t tag);
  size_t end_of_tag(size_t position, char close, bool trim_newline) const;

  std::string source_;
  TagCursor cursor_;
  std::vector<Token> tokens_;
  bool line_starting_ = true;  // the text before the current data ended a line
};

size_t Lexer::find_tag(size_t from) const {
  for (size_t i = source_.find('{', from); i != std::string::npos; i = source_.find('{', i + 1)) {
    const char next = i + 1 < source_.size() ? source_[i + 1] : '\0';
    if (next == '%' || next == '{' || next == '#') return i;
  }
  return source_.size();
}

// Data up to a tag whose sign is '-', '+' or neither. `strip_line`: lstrip_blocks applies to the tag.
void Lexer::push_data(size_t begin, size_t end, char sign, bool strip_line) {
  std::string_view data = std::string_view(source_).substr(begin, end - begin);
  if (sign == '-') {
    data = without_trailing_space(data);
  } else if (sign != '+' && strip_line) {
    const size_t newline = data.rfind('\n');
    const size_t line = newline == std::string_view::npos ? 0 : newline + 1;
    const bool from_line_start = line > 0 || line_starting_;
    if (from_line_start && skip_space(data, line) == data.size()) data = data.substr(0, line);
  }
  if (data.empty()) return;
  Token token = cursor_.make(TokenKind::kData, begin);
  token.text = data;
  tokens_.push_back(std::move(token));
}

void Lexer::next_piece() {
  const size_t begin = cursor_.position();
  const size_t tag = find_tag(begin);
  if (tag == source_.size()) {
    push_data(begin, tag, '+', false);
    cursor_.seek(tag);
    return;
  }
  const char kind = source_[tag + 1];
  const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
  push_data(begin, tag, sign, kind != '{');
  if (kind == '#') {
    skip_comment(tag);
  } else if (kind == '{') {
    cursor_.seek(tag);
    lex_tag(TokenKind::kVariableBegin, TokenKind::kVariableEnd);
  } else if (!lex_raw(tag)) {
    cursor_.seek(tag);
    lex_tag(TokenKind::kBlockBegin, TokenKind::kBlockEnd);
  }
}

void Lexer::lex_tag(TokenKind begin, TokenKind end) {
  const size_t tag = cursor_.position();
  tokens_.push_back(cursor_.make(begin, tag));
  const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
  cursor_.seek(tag + (sign == '-' || sign == '+' ? 3 : 2));
  const char close = end == TokenKind::kBlockEnd ? '%' : '}';
  for (;;) {
    cursor_.seek(skip_space(source_, cursor_.position()));
    const size_t position = cursor_.position();
    const size_t after = cursor_.inside_brackets() ? position : end_of_tag(position, close, close == '%');
    if (after != position) {
      tokens_.push_back(cursor_.make(end, position));
      line_starting_ = source_[after - 1] == '\n';
      cursor_.seek(after);
      return;
    }
    tokens_.push_back(cursor_.next());
  }
}

// Position after the end of a tag with the closing character `close`, or `position` where none is.
size_t Lexer::end_of_tag(size_t position, char close, bool trim_newline) const {
  size_t p = position;
  const bool minus = p < source_.size() && source_[p] == '-';
  const bool plus = p < source_.size() && source_[p] == '+' && close != '}';
  if (minus || plus) ++p;
  if (p + 1 >= source_.size() || source_[p] != close || source_[p + 1] != '}') return position;
  p += 2;
  if (minus) return skip_space(source_, p);
  const bool newline = trim_newline && !plus && p < source_.size() && source_[p] == '\n';
  return newline ? p + 1 : p;
}

void Lexer::skip_comment(size_t tag) {
  const auto is_sign = [&](size_t p) {
    return p < source_.size() && (source_[p] == '-' || source_[p] == '+');
  };
  const size_t begin = tag + (is_sign(tag + 2) ? 3 : 2);
  if (const size_t p = source_.find("#}", begin); p != std::string::npos) {
    const size_t start = p > begin && is_sign(p - 1) ? p - 1 : p;
    const size_t after = end_of_tag(start, '#', true);
    line_starting_ = source_[after - 1] == '\n';
    cursor_.seek(after);
    return;
  }
  const Token place = cursor_.make(TokenKind::kData, tag);
  fail_syntax(place.line, place.column, "the comment is not closed: '#}' is missing");
}

// {% raw %} ... {% endraw %}; false if the tag at `tag` is another one.
bool Lexer::lex_raw(size_t tag) {
  const auto word_after = [&](size_t p, std::string_view word) -> size_t {
    p += 2;
    if (p < source_.size() && (source_[p] == '-' || source_[p] == '+')) ++p;
    p = skip_space(source_, p);
    return source_.compare(p, word.size(), word) == 0 ? skip_space(source_, p + word.size())
                                                      : std::string::npos;
  };
  size_t p = word_after(tag, "raw");
  if (p == std::string::npos || (p < source_.size() && source_[p] == '+')) return false;
  const size_t begin = end_of_tag(p, '%', false);
  if (begin == p) return false;
  line_starting_ = source_[begin - 1] == '\n';
  for (size_t end = source_.find("{%", begin); end != std::string::npos; end = source_.find("{%", end + 1)) {
    p = word_after(end, "endraw");
    if (p == std::string::npos) continue;
    const size_t after = end_of_tag(p, '%', true);
    if (after == p) continue;
    push_data(begin, end, source_[end + 2], true);
    line_starting_ = source_[after - 1] == '\n';
    cursor_.seek(after);
    return true;
  }
  const Token place = cursor_.make(TokenKind::kData, tag);
  fail_syntax(place.line, place.column, "the raw block is not closed: '{% endraw %}' is missing");
}

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(normalize(source)).run(); }

void fail_syntax(int line, int column, const std::string& message) {
  throw Error(ErrorCode::kBadFile,
              "line " + std::to_string(line) + ", column " + std::to_string(column) + ": " + message);
}

}  // namespace sluice::jinja
