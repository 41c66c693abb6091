// What may follow an operand: attributes, subscripts, calls, filters and tests.
#include "text/jinja/expression_parser.h"

namespace sluice::jinja {

// `levels` counts what was wrapped around the operand so far: the tree nests to the left here.
ExprPtr ExpressionParser::postfix(ExprPtr node, int& levels) {
  for (;;) {
    const int line = stream_.line();
    if (stream_.take_operator(".")) {
      if (stream_.at(TokenKind::kInteger)) {
        auto index = std::make_unique<LiteralExpr>(line, Value::integer(stream_.take().integer));
        node = std::make_unique<SubscriptExpr>(line, std::move(node), std::move(index));
      } else {
        const Token& name = stream_.expect(TokenKind::kName, "the name of an attribute");
        node = std::make_unique<AttributeExpr>(line, std::move(node), name.text);
      }
    } else if (stream_.at_operator("[")) {
      node = subscript(std::move(node));
    } else if (stream_.at_operator("(")) {
      auto call = std::make_unique<CallExpr>(line, std::move(node));
      call->arguments = call_arguments();
      node = std::move(call);
    } else {
      return node;
    }
    stream_.check_depth(++levels);
  }
}

ExprPtr ExpressionParser::filters_and_tests(ExprPtr node, int& levels) {
  for (;;) {
    if (stream_.take_operator("|")) {
      node = filter(std::move(node));
    } else if (stream_.at_name("is")) {
      node = test(std::move(node));
    } else if (stream_.at_operator("(")) {
      auto call = std::make_unique<CallExpr>(stream_.line(), std::move(node));
      call->arguments = call_arguments();
      node = std::move(call);
    } else {
      return node;
    }
    stream_.check_depth(++levels);
  }
}

std::string ExpressionParser::dotted_name() {
  std::string name = stream_.expect(TokenKind::kName, "a name").text;
  while (stream_.take_operator(".")) name += "." + stream_.expect(TokenKind::kName, "a name").text;
  return name;
}

ExprPtr ExpressionParser::filter(ExprPtr input) {
  const int line = stream_.line();
  auto node = std::make_unique<ApplyExpr>(ExprKind::kFilter, line, std::move(input), dotted_name());
  if (stream_.at_operator("(")) node->arguments = call_arguments();
  return node;
}

ExprPtr ExpressionParser::filter_chain(bool bare) {
  ExprPtr node;
  int levels = 0;
  while (bare || stream_.take_operator("|")) {
    bare = false;
    node = filter(std::move(node));
    stream_.check_depth(++levels);
  }
  return node;
}

// `x is divisibleby 3` needs no parentheses around one simple argument.
ExprPtr ExpressionParser::test(ExprPtr input) {
  const int line = stream_.take().line;
  const bool negated = stream_.take_name("not");
  auto node = std::make_unique<ApplyExpr>(ExprKind::kTest, line, std::move(input), dotted_name());
  node->negated = negated;
  if (stream_.at_operator("(")) {
    node->arguments = call_arguments();
    return node;
  }
  const Token& next = stream_.current();
  const bool word = next.kind == TokenKind::kName;
  if (word && next.text == "is") stream_.fail("tests can't be chained with 'is'");
  const bool ends = word && (next.text == "else" || next.text == "or" || next.text == "and");
  const bool literal =
      next.kind == TokenKind::kString || next.kind == TokenKind::kInteger || next.kind == TokenKind::kFloat;
  if ((word && !ends) || literal || stream_.at_operator("[") || stream_.at_operator("{")) {
    const TokenStream::Nested nested(stream_);
    int levels = 0;
    node->arguments.positional.push_back(postfix(primary(), levels));
  }
  return node;
}

ExprPtr ExpressionParser::subscript(ExprPtr object) {
  const TokenStream::Nested nested(stream_);
  const int line = stream_.take().line;
  ExprPtr node = subscript_item(std::move(object), line);
  if (stream_.at_operator(",")) stream_.fail("a subscript with several parts fits no value of a template");
  stream_.expect_operator("]");
  return node;
}

ExprPtr ExpressionParser::subscript_item(ExprPtr object, int line) {
  ExprPtr start;
  if (!stream_.at_operator(":")) {
    start = expression();
    if (!stream_.at_operator(":"))
      return std::make_unique<SubscriptExpr>(line, std::move(object), std::move(start));
  }
  auto node = std::make_unique<SliceExpr>(line, std::move(object));
  node->start = std::move(start);
  stream_.expect_operator(":");
  const auto at_end = [&] { return stream_.at_operator("]") || stream_.at_operator(","); };
  if (!at_end() && !stream_.at_operator(":")) node->stop = expression();
  if (stream_.take_operator(":") && !at_end()) node->step = expression();
  return node;
}

CallArguments ExpressionParser::call_arguments() {
  const TokenStream::Nested nested(stream_);
  CallArguments arguments;
  const auto ensure = [&](bool ordered) {
    if (!ordered) stream_.fail("an argument in the wrong order");
  };
  stream_.expect_operator("(");
  for (bool first = true; !stream_.at_operator(")"); first = false) {
    if (!first) stream_.expect_operator(",");
    if (stream_.at_operator(")")) break;
    const bool is_named = stream_.at(TokenKind::kName) && stream_.ahead().kind == TokenKind::kOperator &&
                          stream_.ahead().text == "=";
    if (stream_.take_operator("*")) {
      ensure(arguments.positional_pack == nullptr && arguments.named_pack == nullptr);
      arguments.positional_pack = expression();
    } else if (stream_.take_operator("**")) {
      ensure(arguments.named_pack == nullptr);
      arguments.named_pack = expression();
    } else if (is_named) {
      ensure(arguments.named_pack == nullptr);
      std::string name = stream_.take().text;
      stream_.take();
      arguments.named.push_back({std::move(name), expression()});
    } else {
      ensure(arguments.positional_pack == nullptr && arguments.named_pack == nullptr &&
             arguments.named.empty());
      arguments.positional.push_back(expression());
    }
  }
  stream_.expect_operator(")");
  return arguments;
}

}  // namespace sluice::jinja
