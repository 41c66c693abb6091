// Reading format texts.
#include "text/jinja/python_format.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "text/jinja/access.h"
#include "text/jinja/failure.h"
#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"
#include "text/jinja/unicode.h"

namespace sluice::jinja {
namespace {

bool is_digit_at(std::string_view text, size_t i) {
  return i < text.size() && text[i] >= '0' && text[i] <= '9';
}

// A number of digits at `i`; `otherwise` if there is none. Capped: a width past the largest text fails later
// anyway.
int64_t read_count(std::string_view text, size_t& i, int64_t otherwise) {
  if (!is_digit_at(text, i)) return otherwise;
  int64_t count = 0;
  for (; is_digit_at(text, i); ++i) count = std::min<int64_t>(count * 10 + (text[i] - '0'), int64_t{1} << 40);
  return count;
}

class PercentFormatter {
 public:
  PercentFormatter(Runtime& runtime, const Value& format, const Value& values)
      : runtime_(runtime), out_(runtime), format_(format.str()), values_(values) {}

  Value run() {
    for (size_t i = 0; i < format_.size();) {
      const size_t percent = std::min(format_.find('%', i), format_.size());
      out_.append(format_.substr(i, percent - i));
      i = percent;
      if (i < format_.size()) i = conversion(i + 1);
    }
    const bool all_used = !values_.is(Kind::kTuple)
                              ? used_ > 0 || values_.is(Kind::kDict) || values_.is(Kind::kList)
                              : used_ == values_.items().size();
    if (!all_used) fail("TypeError", "not all arguments converted during string formatting");
    return out_.value();
  }

 private:
  size_t conversion(size_t i);
  Value next_value();
  void convert(const Value& value, FormatSpec spec);

  Runtime& runtime_;
  TextBuilder out_;
  std::string_view format_;
  const Value& values_;
  size_t used_ = 0;
};

Value PercentFormatter::next_value() {
  const bool single = !values_.is(Kind::kTuple);
  if (used_ >= (single ? 1 : values_.items().size()))
    fail("TypeError", "not enough arguments for format string");
  const size_t index = used_++;
  return single ? values_ : values_.items()[index];
}

// After the percent sign at `i`; returns the position after the conversion.
size_t PercentFormatter::conversion(size_t i) {
  Value value;
  bool has_value = false;
  if (i < format_.size() && format_[i] == '(') {
    const size_t close = format_.find(')', i);
    if (close == std::string_view::npos) fail("ValueError", "incomplete format key");
    if (!values_.is(Kind::kDict)) fail("TypeError", "format requires a mapping");
    const std::string key(format_.substr(i + 1, close - i - 1));
    const Value* found = values_.as_dict().find(key);
    if (found == nullptr) fail("KeyError", string_repr(key));
    value = *found;
    has_value = true;
    ++used_;
    i = close + 1;
  }
  FormatSpec spec;
  spec.align = '>';
  for (; i < format_.size() && std::string_view("-+ #0").find(format_[i]) != std::string_view::npos; ++i) {
    if (format_[i] == '-') spec.align = '<';
    if (format_[i] == '+') spec.sign = '+';
    if (format_[i] == ' ' && spec.sign == '-') spec.sign = ' ';
    if (format_[i] == '#') spec.alternate = true;
    if (format_[i] == '0') spec.zero = true;
  }
  spec.width = read_count(format_, i, 0);
  if (i < format_.size() && format_[i] == '.') spec.precision = read_count(format_, ++i, 0);
  if (i >= format_.size()) fail("ValueError", "incomplete format");
  spec.type = format_[i++];
  if (spec.type == '%') {
    out_.append('%');
    return i;
  }
  convert(has_value ? value : next_value(), spec);
  return i;
}

void PercentFormatter::convert(const Value& value, FormatSpec spec) {
  Value shown = value;
  switch (spec.type) {
    case 's':
    case 'r':
    case 'a': {
      TextBuilder text(runtime_);
      spec.type == 's' ? append_text(text, value) : append_repr(text, value);
      shown = text.value();
      spec.type = 's';
      break;
    }
    case 'i':
    case 'u':
      spec.type = 'd';
      [[fallthrough]];
    case 'd':
      if (!value.is_number()) {
        fail("TypeError", "%d format: a real number is required, not " + type_name(value));
      }
      if (value.is(Kind::kFloat)) {
        if (!(std::abs(value.as_real()) < 9.2e18)) fail_limit("an integer of the template passes 64 bits");
        shown = Value::integer(static_cast<int64_t>(value.as_real()));
      }
      break;
    default:
      if (!value.is_number() && !(spec.type == 'c' && value.is_string())) {
        fail("TypeError", "must be real number, not " + type_name(value));
      }
      if (value.is_string()) spec.type = 's';
  }
  if (spec.zero && spec.align == '>' && shown.is_number()) spec.align = '\0';
  out_.append(format_value(runtime_, shown, spec).str());
}

class BraceFormatter {
 public:
  BraceFormatter(Runtime& runtime, const Arguments& arguments) : runtime_(runtime), arguments_(arguments) {}
  std::string run(std::string_view format, int depth);

 private:
  Value field(std::string_view name);
  std::string replacement(std::string_view inside, int depth);
  FormatSpec specification(std::string_view text) const;

  Runtime& runtime_;
  const Arguments& arguments_;
  size_t next_ = 0;
};

std::string BraceFormatter::run(std::string_view format, int depth) {
  if (depth > 2) fail("ValueError", "Max string recursion exceeded");
  TextBuilder out(runtime_);
  for (size_t i = 0; i < format.size();) {
    const char c = format[i];
    const bool brace = c == '{' || c == '}';
    if (!brace) {
      const size_t end = std::min(format.find_first_of("{}", i), format.size());
      out.append(format.substr(i, end - i));
      i = end;
    } else if (i + 1 < format.size() && format[i + 1] == c) {
      out.append(c);
      i += 2;
    } else if (c == '}') {
      fail("ValueError", "Single '}' encountered in format string");
    } else {
      size_t end = i + 1;
      for (int open = 1; end < format.size(); ++end) {
        if (format[end] == '{') ++open;
        if (format[end] == '}' && --open == 0) break;
      }
      if (end == format.size()) fail("ValueError", "expected '}' before end of string");
      out.append(replacement(format.substr(i + 1, end - i - 1), depth));
      i = end + 1;
    }
  }
  return out.take();
}

// A field such as `user.name`, `0[key]` or nothing for the next argument.
Value BraceFormatter::field(std::string_view name) {
  size_t i = std::min(name.find_first_of(".["), name.size());
  const std::string first(name.substr(0, i));
  Value value;
  size_t digits = 0;
  const int64_t index = first.empty() ? static_cast<int64_t>(next_++) : read_count(first, digits, -1);
  if (index >= 0 && digits == first.size()) {
    if (static_cast<size_t>(index) >= arguments_.positional.size()) {
      fail("IndexError",
           "Replacement index " + std::to_string(index) + " out of range for positional args tuple");
    }
    value = arguments_.positional[static_cast<size_t>(index)];
  } else {
    const auto it = std::find_if(arguments_.named.begin(), arguments_.named.end(),
                                 [&](const auto& argument) { return argument.first == first; });
    if (it == arguments_.named.end()) fail("KeyError", string_repr(first));
    value = it->second;
  }
  while (i < name.size()) {
    if (name[i] == '.') {
      const size_t end = std::min(name.find_first_of(".[", i + 1), name.size());
      value = get_attribute(runtime_, value, std::string(name.substr(i + 1, end - i - 1)));
      i = end;
    } else {
      const size_t end = name.find(']', i);
      if (name[i] != '[' || end == std::string_view::npos) fail("ValueError", "Missing ']' in format string");
      const std::string key(name.substr(i + 1, end - i - 1));
      size_t used = 0;
      const int64_t number = read_count(key, used, -1);
      const bool numeric = number >= 0 && used == key.size();
      value = get_item(runtime_, value, numeric ? Value::integer(number) : Value::text(key));
      i = end + 1;
    }
  }
  return value;
}

std::string BraceFormatter::replacement(std::string_view inside, int depth) {
  runtime_.step();
  const size_t mark = std::min(inside.find_first_of("!:"), inside.size());
  Value value = field(inside.substr(0, mark));
  std::string_view rest = inside.substr(mark);
  if (!rest.empty() && rest[0] == '!') {
    const char conversion = rest.size() > 1 ? rest[1] : '\0';
    if (conversion != 'r' && conversion != 's' && conversion != 'a')
      fail("ValueError", "unknown conversion specifier");
    TextBuilder text(runtime_);
    conversion == 's' ? append_text(text, value) : append_repr(text, value);
    value = text.value();
    rest = rest.substr(2);
  }
  if (rest.empty() || rest == ":") return to_text(runtime_, value);
  return format_value(runtime_, value, specification(run(rest.substr(1), depth + 1))).str();
}

FormatSpec BraceFormatter::specification(std::string_view text) const {
  static constexpr std::string_view kAlignments = "<>^=";
  const auto aligns = [&](size_t i) {
    return i < text.size() && kAlignments.find(text[i]) != std::string_view::npos;
  };
  FormatSpec spec;
  size_t i = 0;
  size_t fill = 0;
  if (!text.empty()) next_code_point(text, fill);
  if (aligns(fill)) {
    spec.fill = text.substr(0, fill);
    spec.align = text[fill];
    i = fill + 1;
  } else if (aligns(0)) {
    spec.align = text[i++];
  }
  const auto take = [&](char c) { return i < text.size() && text[i] == c ? (++i, true) : false; };
  for (const char sign : {'+', '-', ' '}) {
    if (take(sign)) spec.sign = sign;
  }
  spec.alternate = take('#');
  spec.zero = take('0');
  spec.width = read_count(text, i, 0);
  spec.commas = take(',');
  if (take('.')) spec.precision = read_count(text, i, 0);
  if (i < text.size()) spec.type = text[i++];
  if (i != text.size()) fail("ValueError", "Invalid format specifier");
  return spec;
}

}  // namespace

Value percent_format(Runtime& runtime, const Value& format, const Value& values) {
  return PercentFormatter(runtime, format, values).run();
}

Value brace_format(Runtime& runtime, std::string_view format, const Arguments& arguments) {
  return Value::text(BraceFormatter(runtime, arguments).run(format, 1));
}

}  // namespace sluice::jinja
