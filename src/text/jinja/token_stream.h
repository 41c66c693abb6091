// Tokens as both halves of the parser read them, and the names that become symbols.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"

namespace sluice::jinja {

inline constexpr int kMaxParseDepth = 100;

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[position_]; }
  const Token& ahead() const { return tokens_[std::min(position_ + 1, tokens_.size() - 1)]; }
  int line() const { return current().line; }
  const Token& take();

  bool at(TokenKind kind) const { return current().kind == kind; }
  bool at_operator(std::string_view text) const { return at(TokenKind::kOperator) && current().text == text; }
  bool at_name(std::string_view text) const { return at(TokenKind::kName) && current().text == text; }
  bool take_operator(std::string_view text);
  bool take_name(std::string_view text);
  void expect_operator(std::string_view text);
  void expect_name(std::string_view text);
  const Token& expect(TokenKind kind, const char* what);
  [[noreturn]] void fail(const std::string& message) const;
  [[noreturn]] void fail_unexpected(const std::string& expected) const;

  /// One level of nesting; throws Error kUnsupported past kMaxParseDepth.
  class Nested {
   public:
    explicit Nested(TokenStream& stream);
    ~Nested() { --stream_.depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    TokenStream& stream_;
  };
  /// For chains that nest to the left (`a.b.c`): throws where `levels` more would pass the limit.
  void check_depth(int levels) const;

  Symbol intern(const std::string& name);
  /// How often `name` was interned so far: tells whether the body between two calls mentions it.
  int mentions(const std::string& name) const;
  std::vector<std::string> take_names() { return std::move(names_); }

 private:
  std::vector<Token> tokens_;
  size_t position_ = 0;
  int depth_ = 0;
  std::vector<std::string> names_;
  std::vector<int> mentions_;
  std::unordered_map<std::string, Symbol> symbols_;
};

std::string describe(const Token& token);

}  // namespace sluice::jinja
