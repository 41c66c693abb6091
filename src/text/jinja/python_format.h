// Python's two ways to format text: `"%s" % value` and `"{}".format(value)`.
#pragma once

#include <string_view>

#include "text/jinja/runtime.h"
#include "text/jinja/value.h"

namespace sluice::jinja {

/// `format % values`: values are a tuple, a dict for %(name)s, or one value. Throws Failure where they do not
/// fit.
Value percent_format(Runtime& runtime, const Value& format, const Value& values);
/// `format.format(...)` with positions, names, attributes, items, !r, !s and format specifications.
Value brace_format(Runtime& runtime, std::string_view format, const Arguments& arguments);

/// One conversion of a number or text, as both ways know it.
struct FormatSpec {
  std::string fill = " ";
  char align = '\0';  // < > ^ =, or '\0' for the default of the type
  char sign = '-';    // + - or space
  bool alternate = false;
  bool zero = false;
  bool commas = false;
  int64_t width = 0;
  int64_t precision = -1;
  char type = '\0';
};
Value format_value(Runtime& runtime, const Value& value, const FormatSpec& spec);

}  // namespace sluice::jinja
