// Macros: definition, binding of arguments, and the call.
#include <algorithm>

#include "text/jinja/interpreter.h"
#include "text/jinja/interpreter_parts.h"
#include "text/jinja/macro_object.h"

namespace sluice::jinja {

Value Interpreter::macro_value(const MacroStmt& macro) {
  step();
  if (captured_.empty() || captured_.back() != scope_) captured_.push_back(scope_);
  return Value::object(std::make_shared<MacroObject>(*this, macro, scope_));
}

Value Interpreter::call_macro(const MacroStmt& macro, const std::shared_ptr<Scope>& definition,
                              const Arguments& arguments) {
  const Nested nested(*this);
  if (macro_depth_ >= kMaxMacroDepth) {
    fail_limit("macros call each other deeper than " + std::to_string(kMaxMacroDepth) + " levels");
  }
  ++macro_depth_;
  struct Leave {
    int& depth;
    ~Leave() { --depth; }
  } leave{macro_depth_};
  const int line = line_;
  Capture capture(*this);
  {
    const InScope inner(*this, definition);
    bind_parameters(macro, arguments, *scope_);
    execute(macro.body);
  }
  line_ = line;
  return text(capture.take());
}

namespace {

const Value* named_argument(const Arguments& arguments, const std::string& name) {
  for (const auto& [key, value] : arguments.named) {
    if (key == name) return &value;
  }
  return nullptr;
}

}  // namespace

void Interpreter::bind_parameters(const MacroStmt& macro, const Arguments& arguments, Scope& scope) {
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const Parameter& parameter = macro.parameters[i];
    const Value* named = named_argument(arguments, parameter.name);
    if (i < arguments.positional.size()) {
      scope.set(parameter.symbol, arguments.positional[i]);
    } else if (named != nullptr) {
      scope.set(parameter.symbol, *named);
    } else if (parameter.default_value != nullptr) {
      scope.set(parameter.symbol, evaluate(*parameter.default_value));
    } else {
      scope.set(parameter.symbol, Value::undefined("parameter '" + parameter.name + "' was not provided"));
    }
  }
  bind_rest(macro, arguments, scope);
}

// What no parameter takes: the caller of a call block, `kwargs` and `varargs`, or an error.
void Interpreter::bind_rest(const MacroStmt& macro, const Arguments& arguments, Scope& scope) {
  const size_t count = macro.parameters.size();
  const auto is_left = [&](const std::string& name) {
    const size_t bound = std::min(arguments.positional.size(), count);
    return std::none_of(macro.parameters.begin() + static_cast<std::ptrdiff_t>(bound), macro.parameters.end(),
                        [&](const Parameter& parameter) { return parameter.name == name; });
  };
  const Value* caller = macro.takes_caller ? named_argument(arguments, "caller") : nullptr;
  if (macro.takes_caller && is_left("caller")) {
    set_named(scope, symbol_of("caller"),
              caller != nullptr ? *caller : Value::undefined("No caller defined"));
  }
  auto rest = std::make_shared<Dict>();
  for (const auto& [key, value] : arguments.named) {
    if (!is_left(key) || (caller != nullptr && key == "caller")) continue;
    if (!macro.takes_kwargs)
      fail("TypeError", "macro '" + macro.name + "' takes no keyword argument '" + key + "'");
    rest->set(Value::text(key), value);
  }
  if (macro.takes_kwargs) set_named(scope, symbol_of("kwargs"), Value::dict(std::move(rest)));
  if (macro.takes_varargs) {
    const auto first = std::min(count, arguments.positional.size());
    const auto begin = arguments.positional.begin() + static_cast<std::ptrdiff_t>(first);
    set_named(scope, symbol_of("varargs"),
              sequence(Kind::kTuple, ValueList(begin, arguments.positional.end())));
  } else if (arguments.positional.size() > count) {
    fail("TypeError",
         "macro '" + macro.name + "' takes not more than " + std::to_string(count) + " argument(s)");
  }
}

}  // namespace sluice::jinja
