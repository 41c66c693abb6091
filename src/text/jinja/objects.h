// Callable values: functions of the interpreter and methods bound to their value.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "text/jinja/value.h"

namespace sluice::jinja {

struct Function : Object {
  using Body = std::function<Value(Runtime&, const Arguments&)>;
  Function(std::string n, Body b) : name(std::move(n)), body(std::move(b)) {}
  std::string type_name() const override { return "function"; }
  std::string repr() const override { return "<function " + name + ">"; }
  bool callable() const override { return true; }
  Value call(Runtime& runtime, const Arguments& arguments) override { return body(runtime, arguments); }

  std::string name;
  Body body;
};

inline Value make_function(std::string name, Function::Body body) {
  return Value::object(std::make_shared<Function>(std::move(name), std::move(body)));
}

}  // namespace sluice::jinja
