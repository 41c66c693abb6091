// Expressions.
#include "text/jinja/access.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/interpreter_parts.h"
#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"

namespace sluice::jinja {

Value Interpreter::evaluate(const Expr& expression) {
  line_ = expression.line;
  // Leaves are free: whatever takes them as operands counts them.
  if (expression.kind == ExprKind::kLiteral) return static_cast<const LiteralExpr&>(expression).value;
  if (expression.kind == ExprKind::kName) return evaluate_name(static_cast<const NameExpr&>(expression));
  const Nested nested(*this);
  step();
  switch (expression.kind) {
    case ExprKind::kLiteral:
    case ExprKind::kName:
      break;
    case ExprKind::kList:
    case ExprKind::kTuple:
    case ExprKind::kConcat:
    case ExprKind::kLogic:
      return evaluate_items(static_cast<const ItemsExpr&>(expression));
    case ExprKind::kDict:
      return evaluate_dict(static_cast<const DictExpr&>(expression));
    case ExprKind::kArithmetic:
      return evaluate_arithmetic(static_cast<const ArithmeticExpr&>(expression));
    case ExprKind::kCompare:
      return evaluate_compare(static_cast<const CompareExpr&>(expression));
    case ExprKind::kConditional:
      return evaluate_conditional(static_cast<const ConditionalExpr&>(expression));
    case ExprKind::kNot:
      return Value::boolean(!truthy(evaluate(*static_cast<const UnaryExpr&>(expression).operand)));
    case ExprKind::kUnary: {
      const auto& unary = static_cast<const UnaryExpr&>(expression);
      return negated(evaluate(*unary.operand), unary.negative);
    }
    case ExprKind::kAttribute: {
      const auto& attribute = static_cast<const AttributeExpr&>(expression);
      return get_attribute(*this, evaluate(*attribute.object), attribute.name);
    }
    case ExprKind::kSubscript: {
      const auto& subscript = static_cast<const SubscriptExpr&>(expression);
      const Value object = evaluate(*subscript.object);
      return get_item(*this, object, evaluate(*subscript.index));
    }
    case ExprKind::kSlice:
      return evaluate_slice(static_cast<const SliceExpr&>(expression));
    case ExprKind::kCall:
      return evaluate_call(static_cast<const CallExpr&>(expression));
    case ExprKind::kFilter:
      return evaluate_filter(static_cast<const ApplyExpr&>(expression), nullptr);
    case ExprKind::kTest:
      return evaluate_test(static_cast<const ApplyExpr&>(expression));
  }
  return Value();
}

Value Interpreter::evaluate_name(const NameExpr& expression) {
  const Value* value = scope_->find(expression.symbol);
  if (value != nullptr) return *value;
  return Value::undefined("'" + template_.names[static_cast<size_t>(expression.symbol)] + "' is undefined");
}

Value Interpreter::evaluate_items(const ItemsExpr& expression) {
  step(static_cast<int64_t>(expression.items.size()));
  if (expression.kind == ExprKind::kLogic) {
    Value value;
    for (const ExprPtr& item : expression.items) {
      value = evaluate(*item);
      if (truthy(value) != expression.is_and) break;
    }
    return value;
  }
  if (expression.kind == ExprKind::kConcat) {
    TextBuilder joined(*this);
    for (const ExprPtr& item : expression.items) append_text(joined, evaluate(*item));
    return joined.value();
  }
  ValueList items;
  for (const ExprPtr& item : expression.items) items.push_back(evaluate(*item));
  return sequence(expression.kind == ExprKind::kList ? Kind::kList : Kind::kTuple, std::move(items));
}

Value Interpreter::evaluate_dict(const DictExpr& expression) {
  step(kObjectSteps);
  auto dict = std::make_shared<Dict>();
  for (const auto& [key, value] : expression.items) {
    const Value own_key = evaluate(*key);
    step(kObjectSteps + own_key.weight());
    dict->set(own_key, evaluate(*value));
  }
  return Value::dict(std::move(dict));
}

Value Interpreter::evaluate_arithmetic(const ArithmeticExpr& expression) {
  Value value = evaluate(*expression.first);
  for (const auto& [op, operand] : expression.rest) {
    const Value right = evaluate(*operand);
    value = apply(*this, op, value, right);
  }
  return value;
}

Value Interpreter::evaluate_compare(const CompareExpr& expression) {
  Value left = evaluate(*expression.first);
  for (const auto& [op, operand] : expression.rest) {
    Value right = evaluate(*operand);
    if (!compare(*this, op, left, right)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Interpreter::evaluate_conditional(const ConditionalExpr& expression) {
  if (truthy(evaluate(*expression.condition))) return evaluate(*expression.value);
  if (expression.otherwise != nullptr) return evaluate(*expression.otherwise);
  return Value::undefined("the inline if-expression on line " + std::to_string(expression.line) +
                          " evaluated to false and no else section was defined.");
}

Value Interpreter::evaluate_optional(const ExprPtr& expression) {
  return expression == nullptr ? Value::none() : evaluate(*expression);
}

Value Interpreter::evaluate_slice(const SliceExpr& expression) {
  const Value object = evaluate(*expression.object);
  const Value start = evaluate_optional(expression.start);
  const Value stop = evaluate_optional(expression.stop);
  const Value stride = evaluate_optional(expression.step);
  return get_slice(*this, object, &start, &stop, &stride);
}

Arguments Interpreter::evaluate_arguments(const CallArguments& arguments) {
  Arguments values;
  step(static_cast<int64_t>(arguments.positional.size() + arguments.named.size()));
  for (const ExprPtr& argument : arguments.positional) values.positional.push_back(evaluate(*argument));
  if (arguments.positional_pack != nullptr) {
    const ValueList pack = iterate(*this, evaluate(*arguments.positional_pack));
    values.positional.insert(values.positional.end(), pack.begin(), pack.end());
  }
  for (const auto& argument : arguments.named)
    values.named.emplace_back(argument.name, evaluate(*argument.value));
  if (arguments.named_pack != nullptr) {
    const Value pack = evaluate(*arguments.named_pack);
    if (!pack.is(Kind::kDict))
      fail("TypeError", "argument after ** must be a mapping, not " + type_name(pack));
    step(static_cast<int64_t>(pack.as_dict().items.size()));
    for (const auto& [key, value] : pack.as_dict().items) {
      if (!key.is_string()) fail("TypeError", "keywords must be strings");
      values.named.emplace_back(key.str(), value);
    }
  }
  return values;
}

Value Interpreter::evaluate_call(const CallExpr& expression) {
  const Value callee = evaluate(*expression.callee);
  const Arguments arguments = evaluate_arguments(expression.arguments);
  line_ = expression.line;
  return call(callee, arguments);
}

// `block`: the text of a block, which the innermost filter of a chain without an input takes.
Value Interpreter::evaluate_filter(const ApplyExpr& expression, const Value* block) {
  Value input;
  if (expression.input == nullptr) {
    input = *block;
  } else if (block != nullptr) {
    input = evaluate_filter(static_cast<const ApplyExpr&>(*expression.input), block);
  } else {
    input = evaluate(*expression.input);
  }
  const Arguments arguments = evaluate_arguments(expression.arguments);
  line_ = expression.line;
  return filter(expression.name, input, arguments);
}

Value Interpreter::evaluate_test(const ApplyExpr& expression) {
  const Value input = evaluate(*expression.input);
  const Arguments arguments = evaluate_arguments(expression.arguments);
  line_ = expression.line;
  return Value::boolean(test(expression.name, input, arguments) != expression.negated);
}

}  // namespace sluice::jinja
