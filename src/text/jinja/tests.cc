// Tests of kinds, numbers and order.
#include "text/jinja/tests.h"

#include <unordered_map>

#include "text/jinja/argument_reader.h"
#include "text/jinja/failure.h"
#include "text/jinja/filters.h"
#include "text/jinja/methods.h"
#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"

namespace sluice::jinja {
namespace {

bool is_defined(Runtime&, const Value& v, const Arguments&) { return !v.is_undefined(); }
bool is_undefined(Runtime&, const Value& v, const Arguments&) { return v.is_undefined(); }
bool is_none(Runtime&, const Value& v, const Arguments&) { return v.is(Kind::kNone); }
bool is_string(Runtime&, const Value& v, const Arguments&) { return v.is_string(); }
bool is_mapping(Runtime&, const Value& v, const Arguments&) { return v.is(Kind::kDict); }
bool is_number(Runtime&, const Value& v, const Arguments&) { return v.is_number(); }
bool is_integer(Runtime&, const Value& v, const Arguments&) { return v.is(Kind::kInt); }
bool is_float(Runtime&, const Value& v, const Arguments&) { return v.is(Kind::kFloat); }
bool is_boolean(Runtime&, const Value& v, const Arguments&) { return v.is(Kind::kBool); }
bool is_true(Runtime&, const Value& v, const Arguments&) { return v.is(Kind::kBool) && v.as_bool(); }
bool is_false(Runtime&, const Value& v, const Arguments&) { return v.is(Kind::kBool) && !v.as_bool(); }
bool is_escaped(Runtime&, const Value& v, const Arguments&) { return v.is_string() && v.as_text().markup; }

// Python's Undefined can be called and walked, so these hold for it.
bool is_callable(Runtime&, const Value& v, const Arguments&) {
  return v.is_undefined() || (v.is(Kind::kObject) && v.as_object().callable());
}
bool is_iterable(Runtime&, const Value& v, const Arguments&) {
  return v.is_undefined() || v.is_string() || v.is_sequence() || v.is(Kind::kDict);
}
bool is_sequence(Runtime&, const Value& v, const Arguments&) {
  return v.is_undefined() || v.is_string() || v.is(Kind::kDict) ||
         (v.is_sequence() && !v.is(Kind::kIterator) && !v.is(Kind::kView));
}

bool has_case(Runtime& runtime, const Value& value, const char* method) {
  const Value text = Value::text(to_text(runtime, value));
  return truthy(find_string_method(method)(runtime, text, {}));
}
bool is_lower_case(Runtime& runtime, const Value& v, const Arguments&) {
  return has_case(runtime, v, "islower");
}
bool is_upper_case(Runtime& runtime, const Value& v, const Arguments&) {
  return has_case(runtime, v, "isupper");
}

int64_t remainder(Runtime& runtime, const Value& value, const Value& divisor) {
  return truthy(apply(runtime, ArithmeticOp::kModulo, value, divisor)) ? 1 : 0;
}
bool is_even(Runtime& runtime, const Value& v, const Arguments&) {
  if (v.is_string()) fail("TypeError", "not all arguments converted during string formatting");
  return remainder(runtime, v, Value::integer(2)) == 0;
}
bool is_odd(Runtime& runtime, const Value& v, const Arguments&) {
  if (v.is_string()) fail("TypeError", "not all arguments converted during string formatting");
  return runtime.equal(apply(runtime, ArithmeticOp::kModulo, v, Value::integer(2)), Value::integer(1));
}
bool is_divisible_by(Runtime& runtime, const Value& v, const Arguments& arguments) {
  const ArgumentReader reader("divisibleby", arguments, {"num"}, 1);
  return remainder(runtime, v, reader[0]) == 0;
}

template <CompareOp op>
bool compares(Runtime& runtime, const Value& v, const Arguments& arguments) {
  const ArgumentReader reader("the comparison", arguments, {"other"}, 1);
  return compare(runtime, op, v, reader[0]);
}

bool is_same(Runtime&, const Value& v, const Arguments& arguments) {
  const ArgumentReader reader("sameas", arguments, {"other"}, 1);
  return v.same_as(reader[0]);
}

bool is_filter(Runtime&, const Value& v, const Arguments&) {
  return v.is_string() && find_filter(v.str()) != nullptr;
}
bool is_test(Runtime&, const Value& v, const Arguments&) {
  return v.is_string() && find_test(v.str()) != nullptr;
}

}  // namespace

TestFunction find_test(std::string_view name) {
  static const std::unordered_map<std::string_view, TestFunction> kTests = {
      {"defined", is_defined},
      {"undefined", is_undefined},
      {"none", is_none},
      {"string", is_string},
      {"mapping", is_mapping},
      {"iterable", is_iterable},
      {"sequence", is_sequence},
      {"number", is_number},
      {"integer", is_integer},
      {"float", is_float},
      {"boolean", is_boolean},
      {"true", is_true},
      {"false", is_false},
      {"callable", is_callable},
      {"escaped", is_escaped},
      {"lower", is_lower_case},
      {"upper", is_upper_case},
      {"odd", is_odd},
      {"even", is_even},
      {"divisibleby", is_divisible_by},
      {"sameas", is_same},
      {"filter", is_filter},
      {"test", is_test},
      {"in", compares<CompareOp::kIn>},
      {"eq", compares<CompareOp::kEqual>},
      {"equalto", compares<CompareOp::kEqual>},
      {"==", compares<CompareOp::kEqual>},
      {"ne", compares<CompareOp::kNotEqual>},
      {"!=", compares<CompareOp::kNotEqual>},
      {"lt", compares<CompareOp::kLess>},
      {"lessthan", compares<CompareOp::kLess>},
      {"<", compares<CompareOp::kLess>},
      {"le", compares<CompareOp::kLessEqual>},
      {"<=", compares<CompareOp::kLessEqual>},
      {"gt", compares<CompareOp::kGreater>},
      {"greaterthan", compares<CompareOp::kGreater>},
      {">", compares<CompareOp::kGreater>},
      {"ge", compares<CompareOp::kGreaterEqual>},
      {">=", compares<CompareOp::kGreaterEqual>},
  };
  const auto it = kTests.find(name);
  return it == kTests.end() ? nullptr : it->second;
}

}  // namespace sluice::jinja
