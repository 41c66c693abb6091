// The statement half of the parser.
#include "text/jinja/parser.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "base/error.h"
#include "text/jinja/expression_parser.h"
#include "text/jinja/token_stream.h"

namespace sluice::jinja {
namespace {

using EndNames = std::initializer_list<std::string_view>;

class StatementParser {
 public:
  explicit StatementParser(std::vector<Token> tokens) : stream_(std::move(tokens)), expressions_(stream_) {}

  Template run() {
    Template parsed;
    parsed.body = body({});
    parsed.names = stream_.take_names();
    return parsed;
  }

 private:
  Body body(EndNames ends);
  Body closed_body(std::string_view end);
  StmtPtr output();
  StmtPtr statement();
  StmtPtr if_statement();
  StmtPtr for_statement();
  StmtPtr set_statement();
  StmtPtr macro_statement();
  StmtPtr call_block();
  StmtPtr filter_block();
  StmtPtr with_statement();
  StmtPtr wrapped_body(std::string_view end);
  StmtPtr jump(StmtKind kind);
  void macro_body(MacroStmt& macro, std::string_view end);
  void signature(MacroStmt& macro);
  Target target(bool with_namespace, std::string_view end_name = {});
  Target single_target(bool with_namespace);
  void end_tag() { stream_.expect(TokenKind::kBlockEnd, "'%}'"); }

  TokenStream stream_;
  ExpressionParser expressions_;
  int loops_ = 0;  // around the current statement, inside its macro
};

// Statements up to a tag whose name is in `ends`; that name becomes the current token. Without `ends`: to the
// end.
Body StatementParser::body(EndNames ends) {
  const TokenStream::Nested nested(stream_);
  Body statements;
  for (;;) {
    switch (stream_.current().kind) {
      case TokenKind::kData: {
        const Token& token = stream_.take();
        statements.push_back(std::make_unique<DataStmt>(token.line, token.text));
        break;
      }
      case TokenKind::kVariableBegin:
        statements.push_back(output());
        break;
      case TokenKind::kBlockBegin: {
        stream_.take();
        const auto is_end = [&](std::string_view end) { return stream_.at_name(end); };
        if (std::any_of(ends.begin(), ends.end(), is_end)) return statements;
        statements.push_back(statement());
        end_tag();
        break;
      }
      default:
        if (ends.size() > 0)
          stream_.fail("the template ends where '" + std::string(*(ends.end() - 1)) + "' is missing");
        return statements;
    }
  }
}

// A body after `%}` up to its end tag, whose own `%}` is left to the caller.
Body StatementParser::closed_body(std::string_view end) {
  end_tag();
  Body statements = body({end});
  stream_.take();
  return statements;
}

StmtPtr StatementParser::output() {
  const int line = stream_.take().line;
  ExprPtr value = expressions_.tuple();
  stream_.expect(TokenKind::kVariableEnd, "'}}'");
  return std::make_unique<OutputStmt>(line, std::move(value));
}

StmtPtr StatementParser::statement() {
  const Token& tag = stream_.expect(TokenKind::kName, "the name of a tag");
  const std::string& name = tag.text;
  if (name == "if") return if_statement();
  if (name == "for") return for_statement();
  if (name == "set") return set_statement();
  if (name == "macro") return macro_statement();
  if (name == "call") return call_block();
  if (name == "filter") return filter_block();
  if (name == "with") return with_statement();
  if (name == "generation") return wrapped_body("endgeneration");
  if (name == "break") return jump(StmtKind::kBreak);
  if (name == "continue") return jump(StmtKind::kContinue);
  static constexpr std::array<std::string_view, 6> kOtherTemplates = {"include", "import", "from",
                                                                      "extends", "block",  "autoescape"};
  if (std::find(kOtherTemplates.begin(), kOtherTemplates.end(), name) != kOtherTemplates.end()) {
    throw Error(ErrorCode::kUnsupported, "line " + std::to_string(tag.line) + ": the tag '" + name +
                                             "' is not supported in chat templates");
  }
  fail_syntax(tag.line, tag.column, "unknown tag '" + name + "'");
}

StmtPtr StatementParser::if_statement() {
  auto node = std::make_unique<IfStmt>(stream_.line());
  for (;;) {
    ExprPtr condition = expressions_.tuple(false);
    end_tag();
    node->branches.emplace_back(std::move(condition), body({"elif", "else", "endif"}));
    const std::string word = stream_.take().text;
    if (word == "elif") continue;
    if (word == "else") node->otherwise = closed_body("endif");
    return node;
  }
}

StmtPtr StatementParser::for_statement() {
  auto node = std::make_unique<ForStmt>(stream_.line());
  node->target = target(false, "in");
  stream_.expect_name("in");
  node->iterable = expressions_.tuple(false, "recursive");
  if (stream_.take_name("if")) node->filter = expressions_.expression();
  node->recursive = stream_.take_name("recursive");
  end_tag();
  ++loops_;
  node->body = body({"else", "endfor"});
  --loops_;
  if (stream_.take().text == "else") node->otherwise = closed_body("endfor");
  return node;
}

StmtPtr StatementParser::set_statement() {
  const int line = stream_.line();
  Target to = target(true);
  if (stream_.take_operator("=")) {
    auto node = std::make_unique<SetStmt>(line);
    node->target = std::move(to);
    node->value = expressions_.tuple();
    return node;
  }
  auto node = std::make_unique<BlockStmt>(StmtKind::kSetBlock, line);
  node->target = std::move(to);
  node->filter = expressions_.filter_chain(false);
  node->body = closed_body("endset");
  return node;
}

StmtPtr StatementParser::filter_block() {
  auto node = std::make_unique<BlockStmt>(StmtKind::kFilterBlock, stream_.line());
  node->filter = expressions_.filter_chain(true);
  node->body = closed_body("endfilter");
  return node;
}

StmtPtr StatementParser::macro_statement() {
  auto node = std::make_unique<MacroStmt>(StmtKind::kMacro, stream_.line());
  node->name = stream_.expect(TokenKind::kName, "the name of a macro").text;
  node->symbol = stream_.intern(node->name);
  signature(*node);
  macro_body(*node, "endmacro");
  return node;
}

void StatementParser::signature(MacroStmt& macro) {
  stream_.expect_operator("(");
  while (!stream_.at_operator(")")) {
    if (!macro.parameters.empty()) stream_.expect_operator(",");
    const std::string name = stream_.expect(TokenKind::kName, "the name of a parameter").text;
    Parameter parameter{stream_.intern(name), name, nullptr};
    if (stream_.take_operator("=")) {
      parameter.default_value = expressions_.expression();
    } else if (!macro.parameters.empty() && macro.parameters.back().default_value != nullptr) {
      stream_.fail("a parameter without default follows one with a default");
    }
    macro.parameters.push_back(std::move(parameter));
  }
  stream_.expect_operator(")");
}

// Jinja passes on what a macro's body mentions: `caller`, `varargs`, `kwargs`.
void StatementParser::macro_body(MacroStmt& macro, std::string_view end) {
  const int caller = stream_.mentions("caller");
  const int varargs = stream_.mentions("varargs");
  const int kwargs = stream_.mentions("kwargs");
  const int outer_loops = std::exchange(loops_, 0);
  macro.body = closed_body(end);
  loops_ = outer_loops;
  macro.takes_caller = stream_.mentions("caller") > caller;
  macro.takes_varargs = stream_.mentions("varargs") > varargs;
  macro.takes_kwargs = stream_.mentions("kwargs") > kwargs;
}

StmtPtr StatementParser::call_block() {
  auto node = std::make_unique<CallBlockStmt>(stream_.line());
  auto caller = std::make_unique<MacroStmt>(StmtKind::kMacro, stream_.line());
  caller->name = "caller";
  if (stream_.at_operator("(")) signature(*caller);
  node->call = expressions_.unary();
  if (node->call->kind != ExprKind::kCall) stream_.fail("'call' needs a call of a macro");
  macro_body(*caller, "endcall");
  node->caller = std::move(caller);
  return node;
}

StmtPtr StatementParser::with_statement() {
  auto node = std::make_unique<WithStmt>(stream_.line());
  while (!stream_.at(TokenKind::kBlockEnd)) {
    if (!node->assignments.empty()) stream_.expect_operator(",");
    Target to = single_target(false);
    stream_.expect_operator("=");
    node->assignments.emplace_back(std::move(to), expressions_.expression());
  }
  node->body = closed_body("endwith");
  return node;
}

StmtPtr StatementParser::wrapped_body(std::string_view end) {
  auto node = std::make_unique<BodyStmt>(stream_.line());
  node->body = closed_body(end);
  return node;
}

StmtPtr StatementParser::jump(StmtKind kind) {
  if (loops_ == 0) stream_.fail("'break' and 'continue' need a loop around them");
  return std::make_unique<JumpStmt>(kind, stream_.line());
}

Target StatementParser::single_target(bool with_namespace) {
  if (stream_.take_operator("(")) {
    const TokenStream::Nested nested(stream_);
    Target inner = target(with_namespace, {});
    stream_.expect_operator(")");
    return inner;
  }
  const Token& name = stream_.expect(TokenKind::kName, "a name to assign to");
  static constexpr std::array<std::string_view, 6> kConstants = {"true", "false", "none",
                                                                 "True", "False", "None"};
  if (std::find(kConstants.begin(), kConstants.end(), name.text) != kConstants.end()) {
    fail_syntax(name.line, name.column, "can't assign to '" + name.text + "'");
  }
  Target single;
  single.symbol = stream_.intern(name.text);
  if (with_namespace && stream_.take_operator(".")) {
    single.attribute = stream_.expect(TokenKind::kName, "the name of an attribute").text;
  }
  return single;
}

Target StatementParser::target(bool with_namespace, std::string_view end_name) {
  Target first = single_target(with_namespace);
  if (!stream_.at_operator(",")) return first;
  Target all;
  all.is_tuple = true;
  all.parts.push_back(std::move(first));
  const auto at_end = [&] {
    return stream_.at(TokenKind::kBlockEnd) || stream_.at_operator(")") || stream_.at_operator("=") ||
           (!end_name.empty() && stream_.at_name(end_name));
  };
  while (stream_.take_operator(",") && !at_end()) all.parts.push_back(single_target(with_namespace));
  return all;
}

}  // namespace

Template parse_template(std::string_view source) { return StatementParser(tokenize(source)).run(); }

}  // namespace sluice::jinja
