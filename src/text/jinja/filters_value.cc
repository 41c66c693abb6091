// Filters on single values: numbers, defaults, JSON, attributes.
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "text/jinja/access.h"
#include "text/jinja/argument_reader.h"
#include "text/jinja/failure.h"
#include "text/jinja/filters.h"
#include "text/jinja/json_text.h"
#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"
#include "text/jinja/text_tools.h"

namespace sluice::jinja {
namespace {

// Digits as Python's int() and float() take them: single underscores between digits, white space around.
bool plain_digits(std::string_view text, std::string& plain) {
  text = stripped(text, nullptr, true, true);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      plain += text[i];
      continue;
    }
    const auto is_digit = [&](size_t at) {
      return at < text.size() &&
             ((text[at] >= '0' && text[at] <= '9') || (text[at] >= 'a' && text[at] <= 'z'));
    };
    if (i == 0 || !is_digit(i - 1) || !is_digit(i + 1)) return false;
  }
  return !plain.empty();
}

bool parse_integer(std::string_view text, int base, Value& value) {
  std::string digits;
  if (!plain_digits(text, digits)) return false;
  size_t begin = digits[0] == '+' || digits[0] == '-' ? 1 : 0;
  const bool negative = digits[0] == '-';
  if (base != 10 && digits.size() > begin + 1 && digits[begin] == '0') {
    const char letter = static_cast<char>(digits[begin + 1] | 0x20);
    const int prefixed = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    if (prefixed != 0 && (base == prefixed || base == 0)) {
      base = prefixed;
      begin += 2;
    }
  }
  if (base == 0) base = 10;
  const std::string number = (negative ? "-" : "") + digits.substr(begin);
  int64_t result = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), result, base);
  if (error == std::errc::result_out_of_range) fail_limit("an integer of the template passes 64 bits");
  if (error != std::errc() || end != number.data() + number.size()) return false;
  value = Value::integer(result);
  return true;
}

bool parse_real(std::string_view text, double& value) {
  std::string digits;
  if (!plain_digits(text, digits)) return false;
  if (digits.find_first_of("xXpP(") != std::string::npos) return false;  // C's hexadecimal floats, nan(...)
  char* end = nullptr;
  value = std::strtod(digits.c_str(), &end);
  return end == digits.c_str() + digits.size();
}

bool to_integer(double value, Value& result) {
  if (!std::isfinite(value)) return false;
  if (std::abs(value) >= 9.2e18) fail_limit("an integer of the template passes 64 bits");
  result = Value::integer(static_cast<int64_t>(value));
  return true;
}

Value integer(Runtime&, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("int", arguments, {"default", "base"});
  const Value otherwise = reader.get(0, Value::integer(0));
  if (input.is_undefined()) fail_undefined(input);
  if (input.is_integral()) return Value::integer(input.as_int());
  const int64_t base = reader.integer(1, 10);
  if (base != 0 && (base < 2 || base > 36)) return otherwise;
  Value result = otherwise;
  double real = 0;
  if (input.is(Kind::kFloat)) {
    to_integer(input.as_real(), result);
  } else if (input.is_string() && !parse_integer(input.str(), static_cast<int>(base), result) &&
             parse_real(input.str(), real)) {
    to_integer(real, result);
  }
  return result;
}

Value real(Runtime&, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("float", arguments, {"default"});
  if (input.is_undefined()) fail_undefined(input);
  if (input.is_number()) return Value::real(input.as_real());
  double value = 0;
  if (input.is_string() && parse_real(input.str(), value)) return Value::real(value);
  return reader.get(0, Value::real(0));
}

Value absolute(Runtime&, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("abs", arguments, {});
  if (input.is_undefined()) fail_undefined(input);
  if (input.is(Kind::kFloat)) return Value::real(std::abs(input.as_real()));
  if (input.is_integral()) return negated(input, input.as_int() < 0);
  fail("TypeError", "bad operand type for abs(): '" + type_name(input) + "'");
}

// Python rounds the exact binary value, ties to even, as printf does.
double round_real(double value, int64_t digits) {
  if (!std::isfinite(value) || digits > 300) return value;
  if (digits < -308) return std::copysign(0.0, value);
  if (digits < 0) {
    const double scale = std::pow(10.0, static_cast<double>(-digits));
    return std::nearbyint(value / scale) * scale;
  }
  char buffer[700];
  std::snprintf(buffer, sizeof buffer, "%.*f", static_cast<int>(digits), value);
  return std::strtod(buffer, nullptr);
}

int64_t round_integer(int64_t value, int64_t digits) {
  if (digits >= 0) return value;
  if (digits < -18) return 0;
  if (value > INT64_MAX / 2 || value < INT64_MIN / 2) fail_limit("an integer of the template passes 64 bits");
  int64_t scale = 1;
  for (; digits < 0; ++digits) scale *= 10;
  const int64_t rest = ((value % scale) + scale) % scale;
  const int64_t low = value - rest;
  const bool up = rest * 2 > scale || (rest * 2 == scale && (low / scale) % 2 != 0);
  return up ? low + scale : low;
}

Value round_filter(Runtime&, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("round", arguments, {"precision", "method"});
  const int64_t digits = reader.integer(0, 0);
  const std::string method = reader.string(1, "common");
  if (input.is_undefined()) fail_undefined(input);
  if (method != "common" && method != "ceil" && method != "floor") {
    fail("FilterArgumentError", "method must be common, ceil or floor");
  }
  if (!input.is_number()) fail("TypeError", "type " + type_name(input) + " doesn't define __round__ method");
  if (method != "common") {
    const double scale = std::pow(10.0, static_cast<double>(digits));
    const double scaled = input.as_real() * scale;
    const double whole = method == "ceil" ? std::ceil(scaled) : std::floor(scaled);
    return Value::real(whole / scale);
  }
  if (input.is_integral()) return Value::integer(round_integer(input.as_int(), digits));
  return Value::real(round_real(input.as_real(), digits));
}

Value default_value(Runtime&, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("default", arguments, {"default_value", "boolean"});
  const bool missing = input.is_undefined() || (reader.flag(1, false) && !truthy(input));
  return missing ? reader.get(0, Value::text("")) : input;
}

Value to_json(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = reader.flag(0, false);
  style.sort_keys = reader.flag(3, false);
  if (reader.given(1)) {
    style.indented = true;
    style.item_separator = ",";
    const bool text = reader[1].is_string();
    style.indent = text ? reader[1].str() : TextBuilder(runtime).repeat(" ", reader.integer(1, 0)).take();
  }
  if (reader.given(2)) {
    const ValueList separators = iterate(runtime, reader[2]);
    if (separators.size() != 2 || !separators[0].is_string() || !separators[1].is_string()) {
      fail("ValueError", "separators must be two strings");
    }
    style.item_separator = separators[0].str();
    style.key_separator = separators[1].str();
  }
  return to_json_text(runtime, input, style);
}

Value attribute(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("attr", arguments, {"name"}, 1);
  const std::string& name = reader.string(0);
  Value value = get_attribute(runtime, input, name);
  // The item of that name is no attribute.
  if (input.is(Kind::kDict) && !value.is(Kind::kObject))
    return Value::undefined("'dict object' has no attribute");
  return value;
}

}  // namespace

const FilterTable& value_filters() {
  static const FilterTable kTable = {
      {"int", integer},           {"float", real},      {"abs", absolute},   {"round", round_filter},
      {"default", default_value}, {"d", default_value}, {"tojson", to_json}, {"attr", attribute},
  };
  return kTable;
}

}  // namespace sluice::jinja
