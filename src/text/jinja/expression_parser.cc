// Recursive descent through Jinja's precedence: conditional, or, and, not, comparison, + -, ~, * / // %, **,
// sign, then attributes, calls, filters and tests.
#include "text/jinja/expression_parser.h"

namespace sluice::jinja {

ExprPtr ExpressionParser::expression(bool with_conditional) {
  const TokenStream::Nested nested(stream_);
  return with_conditional ? conditional() : logic(false);
}

ExprPtr ExpressionParser::conditional() {
  const int line = stream_.line();
  ExprPtr value = logic(false);
  int levels = 0;
  while (stream_.take_name("if")) {
    stream_.check_depth(++levels);
    auto node = std::make_unique<ConditionalExpr>(line);
    node->value = std::move(value);
    node->condition = logic(false);
    if (stream_.take_name("else")) {
      const TokenStream::Nested nested(stream_);
      node->otherwise = conditional();
    }
    value = std::move(node);
  }
  return value;
}

ExprPtr ExpressionParser::logic(bool is_and) {
  const int line = stream_.line();
  const char* word = is_and ? "and" : "or";
  ExprPtr first = is_and ? negation() : logic(true);
  if (!stream_.at_name(word)) return first;
  auto node = std::make_unique<ItemsExpr>(ExprKind::kLogic, line);
  node->is_and = is_and;
  node->items.push_back(std::move(first));
  while (stream_.take_name(word)) node->items.push_back(is_and ? negation() : logic(true));
  return node;
}

ExprPtr ExpressionParser::negation() {
  if (!stream_.at_name("not")) return comparison();
  const TokenStream::Nested nested(stream_);
  const int line = stream_.take().line;
  return std::make_unique<UnaryExpr>(ExprKind::kNot, line, negation(), false);
}

bool ExpressionParser::take_compare_operator(CompareOp& op) {
  static constexpr std::pair<const char*, CompareOp> kOperators[] = {
      {"==", CompareOp::kEqual},     {"!=", CompareOp::kNotEqual}, {"<", CompareOp::kLess},
      {"<=", CompareOp::kLessEqual}, {">", CompareOp::kGreater},   {">=", CompareOp::kGreaterEqual}};
  for (const auto& [text, value] : kOperators) {
    if (!stream_.take_operator(text)) continue;
    op = value;
    return true;
  }
  if (stream_.take_name("in")) {
    op = CompareOp::kIn;
    return true;
  }
  if (stream_.at_name("not") && stream_.ahead().kind == TokenKind::kName && stream_.ahead().text == "in") {
    stream_.take();
    stream_.take();
    op = CompareOp::kNotIn;
    return true;
  }
  return false;
}

ExprPtr ExpressionParser::comparison() {
  const int line = stream_.line();
  ExprPtr first = arithmetic(0);
  CompareOp op;
  if (!take_compare_operator(op)) return first;
  auto node = std::make_unique<CompareExpr>(line);
  node->first = std::move(first);
  do {
    node->rest.emplace_back(op, arithmetic(0));
  } while (take_compare_operator(op));
  return node;
}

// Level 0: + and -. Level 1: * / // %.
ExprPtr ExpressionParser::arithmetic(int level) {
  struct Operator {
    const char* text;
    int level;
    ArithmeticOp op;
  };
  static constexpr Operator kOperators[] = {
      {"+", 0, ArithmeticOp::kAdd},          {"-", 0, ArithmeticOp::kSubtract},
      {"*", 1, ArithmeticOp::kMultiply},     {"/", 1, ArithmeticOp::kDivide},
      {"//", 1, ArithmeticOp::kFloorDivide}, {"%", 1, ArithmeticOp::kModulo}};
  const auto operand = [&] { return level == 0 ? concatenation() : power(); };
  const int line = stream_.line();
  ExprPtr first = operand();
  std::unique_ptr<ArithmeticExpr> node;
  for (bool found = true; found;) {
    found = false;
    for (const Operator& candidate : kOperators) {
      if (candidate.level != level || !stream_.take_operator(candidate.text)) continue;
      if (node == nullptr) {
        node = std::make_unique<ArithmeticExpr>(ExprKind::kArithmetic, line);
        node->first = std::move(first);
      }
      node->rest.emplace_back(candidate.op, operand());
      found = true;
      break;
    }
  }
  if (node != nullptr) return node;
  return first;
}

ExprPtr ExpressionParser::concatenation() {
  const int line = stream_.line();
  ExprPtr first = arithmetic(1);
  if (!stream_.at_operator("~")) return first;
  auto node = std::make_unique<ItemsExpr>(ExprKind::kConcat, line);
  node->items.push_back(std::move(first));
  while (stream_.take_operator("~")) node->items.push_back(arithmetic(1));
  return node;
}

ExprPtr ExpressionParser::power() {
  const int line = stream_.line();
  ExprPtr first = unary();
  if (!stream_.at_operator("**")) return first;
  auto node = std::make_unique<ArithmeticExpr>(ExprKind::kArithmetic, line);
  node->first = std::move(first);
  while (stream_.take_operator("**")) node->rest.emplace_back(ArithmeticOp::kPower, unary());
  return node;
}

ExprPtr ExpressionParser::unary(bool with_filter) {
  const int line = stream_.line();
  ExprPtr node;
  if (stream_.at_operator("-") || stream_.at_operator("+")) {
    const TokenStream::Nested nested(stream_);
    const bool negative = stream_.take().text == "-";
    node = std::make_unique<UnaryExpr>(ExprKind::kUnary, line, unary(false), negative);
  } else {
    node = primary();
  }
  int levels = 0;
  node = postfix(std::move(node), levels);
  return with_filter ? filters_and_tests(std::move(node), levels) : std::move(node);
}

ExprPtr ExpressionParser::primary() {
  const Token& token = stream_.current();
  switch (token.kind) {
    case TokenKind::kName:
      return name_or_constant();
    case TokenKind::kString:
      return strings();
    case TokenKind::kInteger:
      stream_.take();
      return std::make_unique<LiteralExpr>(token.line, Value::integer(token.integer));
    case TokenKind::kFloat:
      stream_.take();
      return std::make_unique<LiteralExpr>(token.line, Value::real(token.real));
    default:
      break;
  }
  if (stream_.at_operator("(")) return parenthesized();
  if (stream_.at_operator("[")) return list();
  if (stream_.at_operator("{")) return dict();
  stream_.fail_unexpected("an expression");
}

ExprPtr ExpressionParser::name_or_constant() {
  const Token& token = stream_.take();
  const std::string& name = token.text;
  if (name == "true" || name == "True")
    return std::make_unique<LiteralExpr>(token.line, Value::boolean(true));
  if (name == "false" || name == "False")
    return std::make_unique<LiteralExpr>(token.line, Value::boolean(false));
  if (name == "none" || name == "None") return std::make_unique<LiteralExpr>(token.line, Value::none());
  return std::make_unique<NameExpr>(token.line, stream_.intern(name));
}

// Neighbouring strings are one.
ExprPtr ExpressionParser::strings() {
  const int line = stream_.line();
  std::string text;
  while (stream_.at(TokenKind::kString)) text += stream_.take().text;
  return std::make_unique<LiteralExpr>(line, Value::text(std::move(text)));
}

ExprPtr ExpressionParser::list() {
  auto node = std::make_unique<ItemsExpr>(ExprKind::kList, stream_.line());
  stream_.expect_operator("[");
  while (!stream_.at_operator("]")) {
    if (!node->items.empty()) stream_.expect_operator(",");
    if (stream_.at_operator("]")) break;
    node->items.push_back(expression());
  }
  stream_.expect_operator("]");
  return node;
}

ExprPtr ExpressionParser::dict() {
  auto node = std::make_unique<DictExpr>(stream_.line());
  stream_.expect_operator("{");
  while (!stream_.at_operator("}")) {
    if (!node->items.empty()) stream_.expect_operator(",");
    if (stream_.at_operator("}")) break;
    ExprPtr key = expression();
    stream_.expect_operator(":");
    node->items.emplace_back(std::move(key), expression());
  }
  stream_.expect_operator("}");
  return node;
}

ExprPtr ExpressionParser::parenthesized() {
  const int line = stream_.take().line;
  if (stream_.take_operator(")")) return std::make_unique<ItemsExpr>(ExprKind::kTuple, line);
  ExprPtr node = tuple();
  stream_.expect_operator(")");
  return node;
}

bool ExpressionParser::at_tuple_end(std::string_view end_name) const {
  return stream_.at(TokenKind::kVariableEnd) || stream_.at(TokenKind::kBlockEnd) ||
         stream_.at_operator(")") || (!end_name.empty() && stream_.at_name(end_name));
}

ExprPtr ExpressionParser::tuple(bool with_conditional, std::string_view end_name) {
  const int line = stream_.line();
  ExprPtr first = expression(with_conditional);
  if (!stream_.at_operator(",")) return first;
  auto node = std::make_unique<ItemsExpr>(ExprKind::kTuple, line);
  node->items.push_back(std::move(first));
  while (stream_.take_operator(",") && !at_tuple_end(end_name))
    node->items.push_back(expression(with_conditional));
  return node;
}

}  // namespace sluice::jinja
