// Reading tokens, and the errors for those that should be others.
#include "text/jinja/token_stream.h"

#include "base/error.h"

namespace sluice::jinja {

const Token& TokenStream::take() {
  const Token& token = tokens_[position_];
  if (position_ + 1 < tokens_.size()) ++position_;
  return token;
}

bool TokenStream::take_operator(std::string_view text) {
  const bool found = at_operator(text);
  if (found) take();
  return found;
}

bool TokenStream::take_name(std::string_view text) {
  const bool found = at_name(text);
  if (found) take();
  return found;
}

void TokenStream::expect_operator(std::string_view text) {
  if (!take_operator(text)) fail_unexpected("'" + std::string(text) + "'");
}

void TokenStream::expect_name(std::string_view text) {
  if (!take_name(text)) fail_unexpected("'" + std::string(text) + "'");
}

const Token& TokenStream::expect(TokenKind kind, const char* what) {
  if (!at(kind)) fail_unexpected(what);
  return take();
}

void TokenStream::fail(const std::string& message) const {
  fail_syntax(current().line, current().column, message);
}

void TokenStream::fail_unexpected(const std::string& expected) const {
  fail("expected " + expected + ", got " + describe(current()));
}

TokenStream::Nested::Nested(TokenStream& stream) : stream_(stream) {
  stream.check_depth(1);
  ++stream.depth_;
}

void TokenStream::check_depth(int levels) const {
  if (depth_ + levels <= kMaxParseDepth) return;
  throw Error(ErrorCode::kUnsupported, "line " + std::to_string(line()) +
                                           ": the template nests deeper than " +
                                           std::to_string(kMaxParseDepth) + " levels");
}

Symbol TokenStream::intern(const std::string& name) {
  const auto [it, added] = symbols_.emplace(name, static_cast<Symbol>(names_.size()));
  if (added) {
    names_.push_back(name);
    mentions_.push_back(0);
  }
  ++mentions_[static_cast<size_t>(it->second)];
  return it->second;
}

int TokenStream::mentions(const std::string& name) const {
  const auto it = symbols_.find(name);
  return it == symbols_.end() ? 0 : mentions_[static_cast<size_t>(it->second)];
}

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kData:
      return "template text";
    case TokenKind::kBlockBegin:
      return "'{%'";
    case TokenKind::kBlockEnd:
      return "'%}'";
    case TokenKind::kVariableBegin:
      return "'{{'";
    case TokenKind::kVariableEnd:
      return "'}}'";
    case TokenKind::kString:
      return "a string";
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return "a number";
    case TokenKind::kEnd:
      return "the end of the template";
    default:
      return "'" + token.text + "'";
  }
}

}  // namespace sluice::jinja
