// Which type has which methods, and those of dicts, lists and numbers.
#include "text/jinja/methods.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "text/jinja/access.h"
#include "text/jinja/argument_reader.h"
#include "text/jinja/failure.h"
#include "text/jinja/objects.h"

namespace sluice::jinja {
namespace {

Value make_view(Runtime& runtime, const char* type_name, ValueList items) {
  runtime.step(kObjectSteps * static_cast<int64_t>(1 + items.size()));
  return Value::view(type_name, std::move(items));
}

Value dict_items(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const ArgumentReader reader("items", arguments, {});
  ValueList pairs;
  for (const auto& [key, value] : self.as_dict().items) pairs.push_back(Value::tuple({key, value}));
  return make_view(runtime, "dict_items", std::move(pairs));
}

Value dict_keys(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const ArgumentReader reader("keys", arguments, {});
  return make_view(runtime, "dict_keys", iterate(runtime, self));
}

Value dict_values(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const ArgumentReader reader("values", arguments, {});
  ValueList values;
  for (const auto& item : self.as_dict().items) values.push_back(item.second);
  return make_view(runtime, "dict_values", std::move(values));
}

Value dict_get(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const ArgumentReader reader("get", arguments, {"key", "default"}, 1);
  runtime.step(reader[0].weight());
  const Value* found = self.as_dict().find(reader[0]);
  return found != nullptr ? *found : reader.get(1, Value::none());
}

Value same_object(Runtime&, const Value& self, const Arguments& arguments) {
  const ArgumentReader reader("copy", arguments, {});
  return self;  // nothing can change it
}

Value list_count(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const ArgumentReader reader("count", arguments, {"value"}, 1);
  int64_t count = 0;
  for (const Value& item : self.items()) count += runtime.equal(item, reader[0]) ? 1 : 0;
  return Value::integer(count);
}

Value list_index(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const ArgumentReader reader("index", arguments, {"value", "start", "stop"}, 1);
  const auto size = static_cast<int64_t>(self.items().size());
  const auto place = [&](size_t argument, int64_t otherwise) {
    const int64_t i = reader.integer(argument, otherwise);
    return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size);
  };
  const int64_t stop = place(2, size);
  for (int64_t i = place(1, 0); i < stop; ++i) {
    if (runtime.equal(self.items()[static_cast<size_t>(i)], reader[0])) return Value::integer(i);
  }
  fail("ValueError", "the value is not in the " + type_name(self));
}

Value float_is_integer(Runtime&, const Value& self, const Arguments& arguments) {
  const ArgumentReader reader("is_integer", arguments, {});
  return Value::boolean(std::isfinite(self.as_real()) && self.as_real() == std::floor(self.as_real()));
}

MethodFunction find_container_method(Kind kind, std::string_view name) {
  if (kind == Kind::kDict) {
    if (name == "items") return dict_items;
    if (name == "keys") return dict_keys;
    if (name == "values") return dict_values;
    if (name == "get") return dict_get;
    if (name == "copy") return same_object;
  }
  if (kind == Kind::kList || kind == Kind::kTuple || kind == Kind::kRange) {
    if (name == "count") return list_count;
    if (name == "index") return list_index;
    if (name == "copy" && kind == Kind::kList) return same_object;
  }
  if (kind == Kind::kFloat && name == "is_integer") return float_is_integer;
  return nullptr;
}

MethodFunction find_function(Kind kind, std::string_view name) {
  if (kind != Kind::kString) return find_container_method(kind, name);
  const MethodFunction method = find_string_method(name);
  return method != nullptr ? method : find_string_split_method(name);
}

template <size_t N>
bool is_among(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Methods that Python has and no template was seen to need.
bool is_missing_method(Kind kind, std::string_view name) {
  static constexpr std::array<std::string_view, 8> kString = {"encode",       "expandtabs", "format_map",
                                                              "isidentifier", "maketrans",  "swapcase",
                                                              "translate",    "isprintable"};
  if (kind == Kind::kString) return is_among(kString, name);
  return kind == Kind::kDict && name == "fromkeys";
}

}  // namespace

bool is_mutating_method(Kind kind, std::string_view name) {
  static constexpr std::array<std::string_view, 5> kDict = {"clear", "pop", "popitem", "setdefault",
                                                            "update"};
  static constexpr std::array<std::string_view, 8> kList = {"append", "clear",  "extend",  "insert",
                                                            "pop",    "remove", "reverse", "sort"};
  if (kind == Kind::kDict) return is_among(kDict, name);
  return kind == Kind::kList && is_among(kList, name);
}

bool find_method(const Value& self, std::string_view name, Value& method) {
  const MethodFunction function = find_function(self.kind(), name);
  if (function != nullptr) {
    method = make_function(std::string(name), [self, function](Runtime& runtime, const Arguments& arguments) {
      return function(runtime, self, arguments);
    });
    return true;
  }
  if (!is_missing_method(self.kind(), name)) return false;
  const std::string full_name = type_name(self) + "." + std::string(name);
  method = make_function(full_name, [full_name](Runtime&, const Arguments&) -> Value {
    fail_limit("the method " + full_name + " is not supported");
  });
  return true;
}

}  // namespace sluice::jinja
