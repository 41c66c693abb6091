// One formatted value: digits, sign, grouping and padding.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "text/jinja/failure.h"
#include "text/jinja/python_format.h"
#include "text/jinja/python_text.h"
#include "text/jinja/text_tools.h"
#include "text/jinja/unicode.h"

namespace sluice::jinja {
namespace {

constexpr int64_t kMaxPrecision = 1000;

struct Number {
  bool negative = false;
  std::string prefix;  // 0x and the like
  std::string digits;
};

Number format_integer(uint64_t magnitude, bool negative, const FormatSpec& spec) {
  Number number;
  number.negative = negative;
  const unsigned base = spec.type == 'x' || spec.type == 'X' ? 16
                        : spec.type == 'o'                   ? 8
                        : spec.type == 'b'                   ? 2
                                                             : 10;
  do {
    const char digit = "0123456789abcdef"[magnitude % base];
    number.digits += spec.type == 'X' && digit > '9' ? static_cast<char>(digit - 32) : digit;
    magnitude /= base;
  } while (magnitude > 0);
  std::reverse(number.digits.begin(), number.digits.end());
  if (spec.alternate && base != 10) number.prefix = std::string("0") + spec.type;
  return number;
}

Number format_real(double value, const FormatSpec& spec) {
  Number number;
  number.negative = std::signbit(value) && !std::isnan(value);
  const double magnitude = std::abs(value);
  if (spec.type == '\0' && spec.precision < 0) {
    number.digits = float_repr(magnitude);
    return number;
  }
  const bool percent = spec.type == '%';
  const char type = percent ? 'f' : spec.type == '\0' || spec.type == 'n' ? 'g' : spec.type;
  const char form[] = {'%', '.', '*', type, '\0'};
  char buffer[1400];
  const auto precision = static_cast<int>(spec.precision < 0 ? 6 : spec.precision);
  std::snprintf(buffer, sizeof buffer, form, precision, percent ? magnitude * 100 : magnitude);
  number.digits = buffer;
  if (percent) number.digits += '%';
  return number;
}

std::string with_commas(const std::string& digits) {
  const size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
  std::string grouped;
  for (size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % 3 == 0) grouped += ',';
    grouped += digits[i];
  }
  return grouped + digits.substr(whole);
}

Value pad_number(Runtime& runtime, const Number& number, const FormatSpec& spec) {
  std::string sign = number.negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  sign += number.prefix;
  const std::string digits = spec.commas ? with_commas(number.digits) : number.digits;
  const auto length = static_cast<int64_t>(sign.size() + digits.size());
  if (spec.align == '=' || (spec.align == '\0' && spec.zero)) {
    TextBuilder result(runtime);
    result.append(sign).repeat(spec.zero ? "0" : spec.fill, spec.width - length);
    return result.append(digits).value();
  }
  const auto alignment = spec.align == '<'   ? Alignment::kLeft
                         : spec.align == '^' ? Alignment::kFormatCenter
                                             : Alignment::kRight;
  return padded(runtime, Text{sign + digits, length, false}, spec.width, spec.fill, alignment);
}

Value format_text(Runtime& runtime, const Value& value, const FormatSpec& spec) {
  std::string text = to_text(runtime, value);
  if (spec.precision >= 0) text.resize(byte_offset(text, spec.precision));
  const int64_t length = count_code_points(text);
  const auto alignment = spec.align == '>'   ? Alignment::kRight
                         : spec.align == '^' ? Alignment::kFormatCenter
                                             : Alignment::kLeft;
  return padded(runtime, Text{std::move(text), length, false}, spec.width, spec.fill, alignment);
}

}  // namespace

Value format_value(Runtime& runtime, const Value& value, const FormatSpec& spec) {
  if (spec.precision > kMaxPrecision) fail_limit("a format with more than 1000 digits is not supported");
  static constexpr std::string_view kIntegerTypes = "dxXobc";
  static constexpr std::string_view kRealTypes = "eEfFgGn%";
  const bool plain = spec.type == '\0';
  if (value.is_integral() &&
      (plain ? value.is(Kind::kInt) : kIntegerTypes.find(spec.type) != std::string_view::npos)) {
    const int64_t number = value.as_int();
    if (spec.type == 'c') {
      std::string character;
      append_code_point(character, static_cast<char32_t>(std::clamp<int64_t>(number, 0, 0x110000)));
      return Value::text(std::move(character));
    }
    const uint64_t magnitude = number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
    return pad_number(runtime, format_integer(magnitude, number < 0, spec), spec);
  }
  const bool real_type = kRealTypes.find(spec.type) != std::string_view::npos;
  if ((value.is_number() && !plain && real_type) || (value.is(Kind::kFloat) && plain)) {
    return pad_number(runtime, format_real(value.as_real(), spec), spec);
  }
  if (plain || spec.type == 's') return format_text(runtime, value, spec);
  fail("ValueError",
       std::string("Unknown format code '") + spec.type + "' for object of type '" + type_name(value) + "'");
}

}  // namespace sluice::jinja
