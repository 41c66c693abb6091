// Arithmetic and comparison.
#include "text/jinja/operators.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "text/jinja/failure.h"
#include "text/jinja/python_format.h"
#include "text/jinja/python_text.h"

namespace sluice::jinja {
namespace {

const char* symbol_of(ArithmeticOp op) {
  switch (op) {
    case ArithmeticOp::kAdd:
      return "+";
    case ArithmeticOp::kSubtract:
      return "-";
    case ArithmeticOp::kMultiply:
      return "*";
    case ArithmeticOp::kDivide:
      return "/";
    case ArithmeticOp::kFloorDivide:
      return "//";
    case ArithmeticOp::kModulo:
      return "%";
    case ArithmeticOp::kPower:
      return "** or pow()";
  }
  return "?";
}

[[noreturn]] void fail_operands(const char* symbol, const Value& a, const Value& b) {
  fail("TypeError", std::string("unsupported operand type(s) for ") + symbol + ": '" + type_name(a) +
                        "' and '" + type_name(b) + "'");
}

[[noreturn]] void fail_overflow() { fail_limit("an integer of the template passes 64 bits"); }

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == -1) {
    int64_t result;
    if (__builtin_sub_overflow(int64_t{0}, a, &result)) fail_overflow();
    return result;
  }
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Value integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) fail("ZeroDivisionError", "0.0 cannot be raised to a negative power");
    return Value::real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  for (;;) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) fail_overflow();
    exponent >>= 1;
    if (exponent == 0) return Value::integer(result);
    if (__builtin_mul_overflow(base, base, &base)) fail_overflow();
  }
}

Value integer_arithmetic(ArithmeticOp op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case ArithmeticOp::kAdd:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case ArithmeticOp::kSubtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case ArithmeticOp::kMultiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case ArithmeticOp::kPower:
      return integer_power(a, b);
    case ArithmeticOp::kDivide:
      if (b == 0) fail("ZeroDivisionError", "division by zero");
      return Value::real(static_cast<double>(a) / static_cast<double>(b));
    case ArithmeticOp::kFloorDivide:
      if (b == 0) fail("ZeroDivisionError", "integer division or modulo by zero");
      result = floor_divide(a, b);
      break;
    case ArithmeticOp::kModulo:
      if (b == 0) fail("ZeroDivisionError", "integer modulo by zero");
      result = b == -1 ? 0 : a - floor_divide(a, b) * b;
      break;
  }
  if (overflow) fail_overflow();
  return Value::integer(result);
}

Value real_arithmetic(ArithmeticOp op, double a, double b) {
  const bool divides =
      op == ArithmeticOp::kDivide || op == ArithmeticOp::kFloorDivide || op == ArithmeticOp::kModulo;
  if (divides && b == 0) fail("ZeroDivisionError", "float division by zero");
  switch (op) {
    case ArithmeticOp::kAdd:
      return Value::real(a + b);
    case ArithmeticOp::kSubtract:
      return Value::real(a - b);
    case ArithmeticOp::kMultiply:
      return Value::real(a * b);
    case ArithmeticOp::kDivide:
      return Value::real(a / b);
    case ArithmeticOp::kFloorDivide:
      return Value::real(std::floor(a / b));
    case ArithmeticOp::kPower: {
      if (a == 0 && b < 0) fail("ZeroDivisionError", "0.0 cannot be raised to a negative power");
      if (a < 0 && b != std::floor(b)) fail_limit("complex numbers are not supported");
      return Value::real(std::pow(a, b));
    }
    case ArithmeticOp::kModulo:
      break;
  }
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  return Value::real(rest == 0 ? std::copysign(0.0, b) : rest);
}

Value add(Runtime& runtime, const Value& a, const Value& b) {
  if (a.is_string() && b.is_string()) {
    const bool markup = a.as_text().markup || b.as_text().markup;
    TextBuilder sum(runtime);
    for (const Value* part : {&a, &b}) {
      if (markup && !part->as_text().markup) {
        sum.append(escape_html(runtime, part->str()));
      } else {
        sum.append(part->str());
      }
    }
    return sum.value(markup);
  }
  if (a.kind() == b.kind() && (a.is(Kind::kList) || a.is(Kind::kTuple))) {
    ValueList items = a.items();
    items.insert(items.end(), b.items().begin(), b.items().end());
    return runtime.sequence(a.kind(), std::move(items));
  }
  if (a.is_string()) {
    fail("TypeError", "can only concatenate str (not \"" + type_name(b) + "\") to str");
  }
  if (a.is(Kind::kList) || a.is(Kind::kTuple)) {
    fail("TypeError",
         "can only concatenate " + type_name(a) + " (not \"" + type_name(b) + "\") to " + type_name(a));
  }
  fail_operands("+", a, b);
}

Value repeat(Runtime& runtime, const Value& value, int64_t count) {
  if (value.is_string()) return TextBuilder(runtime).repeat(value.str(), count).value(value.as_text().markup);
  const auto size = static_cast<int64_t>(value.items().size());
  if (size > 0 && count > kMaxValueWeight / size) fail_limit("a value is larger than 64 MB");
  ValueList items;
  for (int64_t i = 0; i < count; ++i) items.insert(items.end(), value.items().begin(), value.items().end());
  return runtime.sequence(value.kind(), std::move(items));
}

bool repeatable(const Value& value) {
  return value.is_string() || value.is(Kind::kList) || value.is(Kind::kTuple);
}

const char* symbol_of(CompareOp op) {
  switch (op) {
    case CompareOp::kLess:
      return "<";
    case CompareOp::kLessEqual:
      return "<=";
    case CompareOp::kGreater:
      return ">";
    default:
      return ">=";
  }
}

template <class T>
bool holds(CompareOp op, const T& a, const T& b) {
  switch (op) {
    case CompareOp::kLess:
      return a < b;
    case CompareOp::kLessEqual:
      return a <= b;
    case CompareOp::kGreater:
      return a > b;
    default:
      return a >= b;
  }
}

// a < b and the like; sequences by their first difference.
bool in_order(Runtime& runtime, CompareOp op, const Value& a, const Value& b) {
  runtime.step();
  if (a.is_undefined()) fail_undefined(a);
  if (b.is_undefined()) fail_undefined(b);
  if (a.is_integral() && b.is_integral()) return holds(op, a.as_int(), b.as_int());
  if (a.is_number() && b.is_number()) {
    const auto wide = [](const Value& v) {
      return v.is_integral() ? static_cast<long double>(v.as_int()) : static_cast<long double>(v.as_real());
    };
    return holds(op, wide(a), wide(b));
  }
  if (a.is_string() && b.is_string()) {
    runtime.charge_bytes(std::min(a.str().size(), b.str().size()));
    return holds(op, a.str(), b.str());  // UTF-8 sorts as its code points do
  }
  if (a.kind() == b.kind() && (a.is(Kind::kList) || a.is(Kind::kTuple))) {
    const ValueList& x = a.items();
    const ValueList& y = b.items();
    for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
      if (!runtime.equal(x[i], y[i])) return in_order(runtime, op, x[i], y[i]);
    }
    return holds(op, x.size(), y.size());
  }
  fail("TypeError", std::string("'") + symbol_of(op) + "' not supported between instances of '" +
                        type_name(a) + "' and '" + type_name(b) + "'");
}

}  // namespace

Value apply(Runtime& runtime, ArithmeticOp op, const Value& a, const Value& b) {
  runtime.step();
  if (op == ArithmeticOp::kModulo && a.is_string()) return percent_format(runtime, a, b);
  if (a.is_undefined()) fail_undefined(a);
  if (b.is_undefined()) fail_undefined(b);
  if (a.is_integral() && b.is_integral()) return integer_arithmetic(op, a.as_int(), b.as_int());
  if (a.is_number() && b.is_number()) return real_arithmetic(op, a.as_real(), b.as_real());
  if (op == ArithmeticOp::kAdd) return add(runtime, a, b);
  if (op == ArithmeticOp::kMultiply && repeatable(a) && b.is_integral())
    return repeat(runtime, a, b.as_int());
  if (op == ArithmeticOp::kMultiply && repeatable(b) && a.is_integral())
    return repeat(runtime, b, a.as_int());
  fail_operands(symbol_of(op), a, b);
}

bool less_than(Runtime& runtime, const Value& a, const Value& b) {
  return in_order(runtime, CompareOp::kLess, a, b);
}

bool compare(Runtime& runtime, CompareOp op, const Value& a, const Value& b) {
  switch (op) {
    case CompareOp::kEqual:
      return runtime.equal(a, b);
    case CompareOp::kNotEqual:
      return !runtime.equal(a, b);
    case CompareOp::kIn:
      return contains(runtime, b, a);
    case CompareOp::kNotIn:
      return !contains(runtime, b, a);
    default:
      return in_order(runtime, op, a, b);
  }
}

Value negated(const Value& value, bool negative) {
  if (value.is_undefined()) fail_undefined(value);
  if (value.is(Kind::kFloat)) return Value::real(negative ? -value.as_real() : value.as_real());
  if (value.is_integral()) {
    return negative ? integer_arithmetic(ArithmeticOp::kSubtract, 0, value.as_int())
                    : Value::integer(value.as_int());
  }
  fail("TypeError",
       std::string("bad operand type for unary ") + (negative ? "-" : "+") + ": '" + type_name(value) + "'");
}

bool contains(Runtime& runtime, const Value& container, const Value& item) {
  switch (container.kind()) {
    case Kind::kString:
      if (!item.is_string()) {
        fail("TypeError", "'in <string>' requires string as left operand, not " + type_name(item));
      }
      runtime.charge_bytes(container.str().size());
      return find_text(container.str(), item.str()) != std::string::npos;
    case Kind::kDict:
      runtime.step(item.weight());
      return container.as_dict().find(item) != nullptr;
    case Kind::kUndefined:
      return false;
    case Kind::kNone:
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat:
    case Kind::kObject:
      fail("TypeError", "argument of type '" + type_name(container) + "' is not iterable");
    case Kind::kIterator:
      for (const Value& own : iterate(runtime, container)) {
        if (runtime.equal(own, item)) return true;
      }
      return false;
    default:
      for (const Value& own : container.items()) {
        if (runtime.equal(own, item)) return true;
      }
      return false;
  }
}

size_t find_text(std::string_view text, std::string_view needle, size_t from) {
  if (from > text.size()) return std::string::npos;
  if (needle.empty()) return from;
  const void* found = ::memmem(text.data() + from, text.size() - from, needle.data(), needle.size());
  return found == nullptr ? std::string::npos
                          : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

std::string escape_html(Runtime& runtime, std::string_view text) {
  TextBuilder escaped(runtime);
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped.append("&amp;");
        break;
      case '<':
        escaped.append("&lt;");
        break;
      case '>':
        escaped.append("&gt;");
        break;
      case '\'':
        escaped.append("&#39;");
        break;
      case '"':
        escaped.append("&#34;");
        break;
      default:
        escaped.append(c);
    }
  }
  return escaped.take();
}

}  // namespace sluice::jinja
