// Filters on text.
#include <algorithm>

#include "text/jinja/argument_reader.h"
#include "text/jinja/failure.h"
#include "text/jinja/filters.h"
#include "text/jinja/operators.h"
#include "text/jinja/python_format.h"
#include "text/jinja/python_text.h"
#include "text/jinja/text_tools.h"
#include "text/jinja/unicode.h"

namespace sluice::jinja {
namespace {

Value upper(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("upper", arguments, {});
  return runtime.text(to_upper(to_text(runtime, input)));
}

Value lower(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("lower", arguments, {});
  return runtime.text(to_lower(to_text(runtime, input)));
}

Value capitalize(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("capitalize", arguments, {});
  return runtime.text(to_capitalized(to_text(runtime, input)));
}

// Words start after white space and - ( { [ <; unlike str.title, an apostrophe starts none.
Value title(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("title", arguments, {});
  const std::string text = to_text(runtime, input);
  const auto separates = [](char32_t c) {
    return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
  };
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    const bool separator = separates(next_code_point(text, i));
    while (!separator && i < text.size()) {
      size_t next = i;
      if (separates(next_code_point(text, next))) break;
      i = next;
    }
    const std::string_view piece = std::string_view(text).substr(start, i - start);
    result += separator ? std::string(piece) : to_capitalized(piece);
  }
  return runtime.text(std::move(result));
}

Value trim(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("trim", arguments, {"chars"});
  const std::string text = to_text(runtime, input);
  const std::string* characters = reader.given(0) ? &reader.string(0) : nullptr;
  return Value::text(std::string(stripped(text, characters, true, true)));
}

Value replace(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("replace", arguments, {"old", "new", "count"}, 2);
  return replace_text(runtime, to_text(runtime, input), to_text(runtime, reader[0]),
                      to_text(runtime, reader[1]), reader.integer(2, -1));
}

Value indent(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("indent", arguments, {"width", "first", "blank"});
  const std::string text = to_text(runtime, input) + "\n";
  std::string margin;
  if (reader.has(0) && reader[0].is_string()) {
    margin = reader[0].str();
  } else {
    margin = TextBuilder(runtime).repeat(" ", reader.integer(0, 4)).take();
  }
  const bool blank = reader.flag(2, false);
  TextBuilder result(runtime);
  bool first_line = true;
  for (const std::string_view line : split_lines(runtime, text, false)) {
    if (!first_line) result.append('\n');
    const bool indented = first_line ? reader.flag(1, false) : blank || !line.empty();
    if (indented) result.append(margin);
    result.append(line);
    first_line = false;
  }
  return result.value();
}

Value truncate(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("truncate", arguments, {"length", "killwords", "end", "leeway"});
  const Value text = Value::text(to_text(runtime, input));
  const int64_t length = reader.integer(0, 255);
  const std::string end = reader.string(2, "...");
  const int64_t kept = length - count_code_points(end);
  const int64_t leeway = reader.integer(3, 5);
  if (kept < 0) fail("AssertionError", "expected length >= " + std::to_string(length - kept));
  if (leeway < 0) fail("AssertionError", "expected leeway >= 0");
  if (text.as_text().length <= length + std::min<int64_t>(leeway, int64_t{1} << 30)) return text;
  std::string result = text.str().substr(0, byte_offset(text.str(), kept));
  const size_t space = result.rfind(' ');
  if (!reader.flag(1, false) && space != std::string::npos) result.resize(space);
  return runtime.text(result + end);
}

Value word_count(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("wordcount", arguments, {});
  const std::string text = to_text(runtime, input);
  int64_t words = 0;
  bool inside = false;
  for (size_t i = 0; i < text.size();) {
    const char32_t c = next_code_point(text, i);
    const bool word = is_letter(c) || is_digit(c) || c == '_';
    if (word && !inside) ++words;
    inside = word;
  }
  return Value::integer(words);
}

Value center(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("center", arguments, {"width"});
  const Value text = Value::text(to_text(runtime, input));
  return padded(runtime, text.as_text(), reader.integer(0, 80), " ", Alignment::kCenter);
}

Value format(Runtime& runtime, const Value& input, const Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.named.empty()) {
    fail("FilterArgumentError", "can't handle positional and keyword arguments at the same time");
  }
  const Value text = Value::text(to_text(runtime, input));
  if (arguments.named.empty()) return percent_format(runtime, text, Value::tuple(arguments.positional));
  auto dict = std::make_shared<Dict>();
  for (const auto& [name, value] : arguments.named) dict->set(Value::text(name), value);
  return percent_format(runtime, text, Value::dict(std::move(dict)));
}

Value escape(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("escape", arguments, {});
  if (input.is_string() && input.as_text().markup) return input;
  return Value::text(escape_html(runtime, to_text(runtime, input)), true);
}

Value force_escape(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("forceescape", arguments, {});
  return Value::text(escape_html(runtime, to_text(runtime, input)), true);
}

Value safe(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("safe", arguments, {});
  return runtime.text(to_text(runtime, input), true);
}

Value string(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("string", arguments, {});
  return input.is_string() ? input : Value::text(to_text(runtime, input));
}

Value url_encode(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("urlencode", arguments, {});
  if (input.is(Kind::kDict)) fail_limit("urlencode of a dict is not supported");
  static constexpr std::string_view kUnreserved = "-._~/";
  TextBuilder encoded(runtime);
  for (const char c : to_text(runtime, input)) {
    const bool alphanumeric = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (alphanumeric || kUnreserved.find(c) != std::string_view::npos) {
      encoded.append(c);
    } else {
      const auto byte = static_cast<unsigned char>(c);
      const char digits[] = {'%', "0123456789ABCDEF"[byte >> 4], "0123456789ABCDEF"[byte & 15]};
      encoded.append(std::string_view(digits, 3));
    }
  }
  return encoded.value();
}

}  // namespace

const FilterTable& text_filters() {
  static const FilterTable kTable = {
      {"upper", upper},
      {"lower", lower},
      {"capitalize", capitalize},
      {"title", title},
      {"trim", trim},
      {"replace", replace},
      {"indent", indent},
      {"truncate", truncate},
      {"wordcount", word_count},
      {"center", center},
      {"format", format},
      {"escape", escape},
      {"e", escape},
      {"forceescape", force_escape},
      {"safe", safe},
      {"string", string},
      {"urlencode", url_encode},
  };
  return kTable;
}

}  // namespace sluice::jinja
