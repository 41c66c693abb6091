// Statements.
#include "text/jinja/interpreter.h"

#include "text/jinja/globals.h"
#include "text/jinja/interpreter_parts.h"
#include "text/jinja/loop_object.h"
#include "text/jinja/python_text.h"

namespace sluice::jinja {
namespace {

// A loop object that a namespace keeps must not hold its scope, which may hold the object.
struct EndOfLoop {
  LoopObject& loop;
  ~EndOfLoop() { loop.recurse = nullptr; }
};

}  // namespace

Interpreter::Interpreter(const Template& parsed)
    : template_(parsed), scope_(std::make_shared<Scope>(nullptr)), loop_symbol_(symbol_of("loop")) {
  for (const auto& [name, value] : global_functions()) set_variable(name, value);
  scope_ = std::make_shared<Scope>(scope_);
}

Interpreter::~Interpreter() {
  for (const auto& scope : captured_) scope->clear();
  scope_->clear();
  release_namespaces();
}

void Interpreter::set_variable(std::string_view name, const Value& value) {
  set_named(*scope_, symbol_of(name), value);
}

// -1: the template never mentions the name, so its value can't matter.
Symbol Interpreter::symbol_of(std::string_view name) const {
  for (size_t i = 0; i < template_.names.size(); ++i) {
    if (template_.names[i] == name) return static_cast<Symbol>(i);
  }
  return -1;
}

void Interpreter::set_named(Scope& scope, Symbol symbol, const Value& value) {
  if (symbol >= 0) scope.set(symbol, value);
}

std::string Interpreter::render() {
  Capture capture(*this);
  execute(template_.body);
  return capture.take();
}

void Interpreter::write(std::string_view text) {
  if (text.size() > kMaxTextBytes - output_->size())
    fail_limit("the output of the template is larger than 64 MB");
  charge_bytes(text.size());
  output_->append(text);
}

Interpreter::Flow Interpreter::execute(const Body& body) {
  for (const StmtPtr& statement : body) {
    const Flow flow = execute(*statement);
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::execute(const Stmt& statement) {
  const Nested nested(*this);
  step();
  line_ = statement.line;
  switch (statement.kind) {
    case StmtKind::kData:
      write(static_cast<const DataStmt&>(statement).text);
      break;
    case StmtKind::kOutput: {
      const Value value = evaluate(*static_cast<const OutputStmt&>(statement).value);
      if (value.is_string()) {
        write(value.str());
      } else {
        write(to_text(*this, value));
      }
      break;
    }
    case StmtKind::kIf:
      return execute_if(static_cast<const IfStmt&>(statement));
    case StmtKind::kFor: {
      const auto& loop = static_cast<const ForStmt&>(statement);
      return execute_for(loop, evaluate(*loop.iterable), 1);
    }
    case StmtKind::kSet:
      execute_set(static_cast<const SetStmt&>(statement));
      break;
    case StmtKind::kSetBlock:
    case StmtKind::kFilterBlock:
      return execute_block(static_cast<const BlockStmt&>(statement));
    case StmtKind::kMacro: {
      const auto& macro = static_cast<const MacroStmt&>(statement);
      scope_->set(macro.symbol, macro_value(macro));
      break;
    }
    case StmtKind::kCallBlock:
      execute_call_block(static_cast<const CallBlockStmt&>(statement));
      break;
    case StmtKind::kWith:
      return execute_with(static_cast<const WithStmt&>(statement));
    case StmtKind::kBody:
      return execute(static_cast<const BodyStmt&>(statement).body);
    case StmtKind::kBreak:
      return Flow::kBreak;
    case StmtKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::execute_if(const IfStmt& statement) {
  for (const auto& [condition, body] : statement.branches) {
    if (truthy(evaluate(*condition))) return execute(body);
  }
  return execute(statement.otherwise);
}

ValueList Interpreter::loop_items(const ForStmt& statement, const Value& iterable) {
  ValueList items = iterate(*this, iterable);
  if (statement.filter == nullptr) return items;
  ValueList kept;
  for (Value& item : items) {
    const InScope inner(*this, scope_);
    assign(statement.target, item);
    if (truthy(evaluate(*statement.filter))) kept.push_back(std::move(item));
  }
  return kept;
}

Interpreter::Flow Interpreter::execute_for(const ForStmt& statement, const Value& iterable, int depth) {
  const std::shared_ptr<Scope> outer = scope_;
  auto loop = std::make_shared<LoopObject>(loop_items(statement, iterable), depth);
  const EndOfLoop end{*loop};
  if (statement.recursive) {
    loop->recurse = [this, &statement, outer, depth](const Value& items) {
      return run_recursive(statement, outer, items, depth + 1);
    };
  }
  const bool completed = execute_iterations(statement, *loop, Value::object(loop));
  // As in Jinja: `else` runs unless an iteration came to its end, so also where the first one breaks.
  if (completed) return Flow::kNormal;
  const InScope inner(*this, outer);
  return execute(statement.otherwise);
}

// True if an iteration came to the end of the body.
bool Interpreter::execute_iterations(const ForStmt& statement, LoopObject& loop, const Value& loop_value) {
  bool completed = false;
  const InScope inner(*this, scope_);
  const std::shared_ptr<Scope>& outer = inner.outer();
  for (loop.index = 0; loop.index < loop.items.size(); ++loop.index) {
    step();
    if (scope_.use_count() > 1) {  // a macro of the last iteration keeps it
      scope_ = std::make_shared<Scope>(outer);
    } else {
      scope_->clear();
    }
    set_named(*scope_, loop_symbol_, loop_value);
    assign(statement.target, loop.items[loop.index]);
    const Flow flow = execute(statement.body);
    if (flow == Flow::kBreak) break;
    completed = completed || flow == Flow::kNormal;
  }
  return completed;
}

Value Interpreter::run_recursive(const ForStmt& loop, const std::shared_ptr<Scope>& outer, const Value& items,
                                 int depth) {
  const Nested nested(*this);
  if (depth > kMaxMacroDepth) fail_limit("a recursive loop runs deeper than 100 levels");
  const int line = line_;
  Capture capture(*this);
  {
    const InScope inner(*this, outer);
    execute_for(loop, items, depth);
  }
  line_ = line;
  return text(capture.take());
}

Interpreter::Flow Interpreter::execute_with(const WithStmt& statement) {
  ValueList values;
  for (const auto& assignment : statement.assignments) values.push_back(evaluate(*assignment.second));
  const InScope inner(*this, scope_);
  for (size_t i = 0; i < values.size(); ++i) assign(statement.assignments[i].first, values[i]);
  return execute(statement.body);
}

void Interpreter::execute_set(const SetStmt& statement) {
  assign(statement.target, evaluate(*statement.value));
}

Interpreter::Flow Interpreter::execute_block(const BlockStmt& statement) {
  std::string content;
  {
    Capture capture(*this);
    const InScope inner(*this, scope_);
    const Flow flow = execute(statement.body);
    if (flow != Flow::kNormal) return flow;
    content = capture.take();
  }
  Value value = text(std::move(content));
  if (statement.filter != nullptr)
    value = evaluate_filter(static_cast<const ApplyExpr&>(*statement.filter), &value);
  if (statement.kind == StmtKind::kSetBlock) {
    assign(statement.target, value);
  } else {
    write(to_text(*this, value));
  }
  return Flow::kNormal;
}

void Interpreter::execute_call_block(const CallBlockStmt& statement) {
  const auto& call = static_cast<const CallExpr&>(*statement.call);
  const Value callee = evaluate(*call.callee);
  Arguments arguments = evaluate_arguments(call.arguments);
  arguments.named.emplace_back("caller", macro_value(*statement.caller));
  const Value result = this->call(callee, arguments);
  line_ = statement.line;
  write(to_text(*this, result));
}

void Interpreter::assign(const Target& target, const Value& value) {
  if (target.is_tuple) {
    const ValueList items = iterate(*this, value);
    const std::string expected = "(expected " + std::to_string(target.parts.size());
    if (items.size() < target.parts.size()) {
      fail("ValueError",
           "not enough values to unpack " + expected + ", got " + std::to_string(items.size()) + ")");
    }
    if (items.size() > target.parts.size()) fail("ValueError", "too many values to unpack " + expected + ")");
    for (size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i]);
    return;
  }
  if (target.attribute.empty()) {
    scope_->set(target.symbol, value);
    return;
  }
  const Value* holder = scope_->find(target.symbol);
  auto* object = holder != nullptr && holder->is(Kind::kObject)
                     ? dynamic_cast<Namespace*>(&holder->as_object())
                     : nullptr;
  if (object == nullptr) fail("TemplateRuntimeError", "cannot assign attribute on non-namespace object");
  object->attributes.set(Value::text(target.attribute), value);
}

}  // namespace sluice::jinja
