// The inside of tags: names, numbers, strings and operators.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/lexer.h"

namespace sluice::jinja {

/// A position in the source that knows its line, and reads one token of a tag at a time.
class TagCursor {
 public:
  /// `source` must outlive the cursor and stay where it is.
  explicit TagCursor(std::string_view source) : source_(source) {}

  size_t position() const { return position_; }
  void seek(size_t position) { position_ = position; }
  /// Inside brackets `}}` and `%}` do not end a tag.
  bool inside_brackets() const { return !brackets_.empty(); }

  /// A token of `kind` at `position`. Positions must not decrease.
  Token make(TokenKind kind, size_t position);
  /// The token at the position, which must not be white space; moves past it. Throws Error kBadFile.
  Token next();

 private:
  Token read_name();
  Token read_number();
  Token read_string();
  Token read_operator();
  size_t digits_from(size_t position, bool (*accepts)(char)) const;
  void track_bracket(const Token& token);

  std::string_view source_;
  size_t position_ = 0;
  size_t counted_ = 0;  // newlines before this are in line_
  size_t line_start_ = 0;
  int line_ = 1;
  std::string brackets_;  // closing brackets that are due
};

}  // namespace sluice::jinja
