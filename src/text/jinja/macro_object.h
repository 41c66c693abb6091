// A macro as a value: its syntax, and the scope that it was defined in.
#pragma once

#include <memory>
#include <string>

#include "text/jinja/interpreter.h"

namespace sluice::jinja {

struct MacroObject : Object {
  MacroObject(Interpreter& i, const MacroStmt& m, std::shared_ptr<Scope> d)
      : interpreter(i), macro(m), definition(std::move(d)) {}
  std::string type_name() const override { return "Macro"; }
  std::string repr() const override { return "<Macro '" + macro.name + "'>"; }
  bool callable() const override { return true; }
  Value call(Runtime&, const Arguments& arguments) override {
    return interpreter.call_macro(macro, definition, arguments);
  }
  bool attribute(Runtime&, std::string_view name, Value& value) override {
    if (name == "name") value = Value::text(macro.name);
    return name == "name";
  }

  Interpreter& interpreter;
  const MacroStmt& macro;
  std::shared_ptr<Scope> definition;
};

}  // namespace sluice::jinja
