// The variable `loop` inside a for.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "text/jinja/value.h"

namespace sluice::jinja {

struct LoopObject : Object, std::enable_shared_from_this<LoopObject> {
  LoopObject(ValueList loop_items, int loop_depth) : items(std::move(loop_items)), depth(loop_depth) {}
  std::string type_name() const override { return "LoopContext"; }
  std::string repr() const override;
  bool callable() const override { return true; }
  Value call(Runtime& runtime, const Arguments& arguments) override;
  bool attribute(Runtime& runtime, std::string_view name, Value& value) override;

  ValueList items;
  size_t index = 0;
  int depth;
  std::function<Value(const Value& items)> recurse;  // empty: not a recursive loop

 private:
  bool changed(Runtime& runtime, const ValueList& values);
  Value last_changed_;  // arguments of the last changed(); undefined before the first
};

}  // namespace sluice::jinja
