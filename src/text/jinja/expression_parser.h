// The expression half of the parser.
#pragma once

#include "text/jinja/ast.h"
#include "text/jinja/token_stream.h"

namespace sluice::jinja {

/// Reads expressions of `stream`. Throws what parse_template throws.
class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& stream) : stream_(stream) {}

  ExprPtr expression(bool with_conditional = true);
  /// One expression, or several with commas as a tuple. `end_name`: a word that ends it, such as "recursive".
  ExprPtr tuple(bool with_conditional = true, std::string_view end_name = {});
  /// Filters without an input: `| a | b`, or `a | b` where `bare`. Null where there are none.
  ExprPtr filter_chain(bool bare);
  CallArguments call_arguments();
  ExprPtr unary(bool with_filter = true);

 private:
  ExprPtr conditional();
  ExprPtr logic(bool is_and);
  ExprPtr negation();
  ExprPtr comparison();
  ExprPtr arithmetic(int level);
  ExprPtr concatenation();
  ExprPtr power();
  ExprPtr primary();
  ExprPtr name_or_constant();
  ExprPtr strings();
  ExprPtr list();
  ExprPtr dict();
  ExprPtr parenthesized();
  ExprPtr postfix(ExprPtr node, int& levels);
  ExprPtr filters_and_tests(ExprPtr node, int& levels);
  ExprPtr filter(ExprPtr input);
  ExprPtr test(ExprPtr input);
  ExprPtr subscript(ExprPtr object);
  ExprPtr subscript_item(ExprPtr object, int line);
  bool take_compare_operator(CompareOp& op);
  bool at_tuple_end(std::string_view end_name) const;
  std::string dotted_name();

  TokenStream& stream_;
};

}  // namespace sluice::jinja
