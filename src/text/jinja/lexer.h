// Template source to tokens, with Jinja's whitespace control under trim_blocks and lstrip_blocks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::jinja {

enum class TokenKind : uint8_t {
  kData,           // text between tags; `text` holds it
  kBlockBegin,     // {%
  kBlockEnd,       // %}
  kVariableBegin,  // {{
  kVariableEnd,    // }}
  kName,
  kString,  // `text` holds the decoded value
  kInteger,
  kFloat,
  kOperator,  // `text` holds its characters
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;
  int line = 1;
  int column = 1;  // in bytes, of the token's first character
  int64_t integer = 0;
  double real = 0;
};

/// Tokens of `source`, ended by kEnd. Comments are dropped and raw blocks become data. Throws Error kBadFile
/// with line and column for what is no token, kUnsupported for an integer of more than 64 bits.
std::vector<Token> tokenize(std::string_view source);

/// Throws the Error (kBadFile) of a template that can't be parsed.
[[noreturn]] void fail_syntax(int line, int column, const std::string& message);

}  // namespace sluice::jinja
