// Methods of str: case, searching, tests of characters, replacing.
#include <algorithm>
#include <unordered_map>

#include "text/jinja/access.h"
#include "text/jinja/argument_reader.h"
#include "text/jinja/failure.h"
#include "text/jinja/methods.h"
#include "text/jinja/operators.h"
#include "text/jinja/python_format.h"
#include "text/jinja/text_tools.h"
#include "text/jinja/unicode.h"

namespace sluice::jinja {
namespace {

Value upper(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const ArgumentReader reader("upper", arguments, {});
  return runtime.text(to_upper(self.str()));
}

Value lower(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const ArgumentReader reader("lower", arguments, {});
  return runtime.text(to_lower(self.str()));
}

Value capitalize(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const ArgumentReader reader("capitalize", arguments, {});
  return runtime.text(to_capitalized(self.str()));
}

// Every run of letters gets a capital: "they're" becomes "They'Re", as in Python.
Value title(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const ArgumentReader reader("title", arguments, {});
  const std::string& text = self.str();
  std::string result;
  bool inside = false;
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    const bool cased = is_cased(next_code_point(text, i));
    const std::string_view character = std::string_view(text).substr(start, i - start);
    result += cased && inside ? to_lower(character)
              : cased         ? to_capitalized(character)
                              : std::string(character);
    inside = cased;
  }
  return runtime.text(std::move(result));
}

// The part of `text` that start and stop select, as byte offsets; false where start is past the end.
bool searched_part(const ArgumentReader& reader, const Text& text, size_t& begin, size_t& end) {
  const auto place = [&](size_t argument, int64_t otherwise) {
    const int64_t i = reader.integer(argument, otherwise);
    return i < 0 ? std::max<int64_t>(i + text.length, 0) : i;
  };
  const int64_t first = place(1, 0);
  const int64_t last = std::min(place(2, text.length), text.length);
  if (first > last) return false;
  begin = byte_offset(text.utf8, first);
  end = byte_offset(text.utf8, last);
  return true;
}

// Character index of the first or last match, or -1.
int64_t find_in(Runtime& runtime, const char* name, const Value& self, const Arguments& arguments,
                bool from_right) {
  const ArgumentReader reader(name, arguments, {"sub", "start", "end"}, 1);
  const std::string& needle = reader.string(0);
  size_t begin = 0, end = 0;
  runtime.charge_bytes(self.str().size());
  if (!searched_part(reader, self.as_text(), begin, end)) return -1;
  const std::string_view part = std::string_view(self.str()).substr(begin, end - begin);
  size_t found = find_text(part, needle);
  if (from_right) {
    if (needle.empty()) found = part.size();
    for (size_t next = found; !needle.empty() && next != std::string::npos;
         next = find_text(part, needle, next + 1)) {
      found = next;
      runtime.step();
    }
  }
  return found == std::string::npos
             ? -1
             : count_code_points(std::string_view(self.str()).substr(0, begin + found));
}

Value find(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return Value::integer(find_in(runtime, "find", self, arguments, false));
}

Value rfind(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return Value::integer(find_in(runtime, "rfind", self, arguments, true));
}

Value index(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const int64_t found = find_in(runtime, "index", self, arguments, false);
  if (found < 0) fail("ValueError", "substring not found");
  return Value::integer(found);
}

Value rindex(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const int64_t found = find_in(runtime, "rindex", self, arguments, true);
  if (found < 0) fail("ValueError", "substring not found");
  return Value::integer(found);
}

Value count(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const ArgumentReader reader("count", arguments, {"sub", "start", "end"}, 1);
  const std::string& needle = reader.string(0);
  size_t begin = 0, end = 0;
  runtime.charge_bytes(self.str().size());
  if (!searched_part(reader, self.as_text(), begin, end)) return Value::integer(0);
  const std::string_view part = std::string_view(self.str()).substr(begin, end - begin);
  if (needle.empty()) return Value::integer(count_code_points(part) + 1);
  int64_t matches = 0;
  for (size_t at = find_text(part, needle); at != std::string::npos;
       at = find_text(part, needle, at + needle.size())) {
    ++matches;
  }
  return Value::integer(matches);
}

bool has_affix(const char* name, const Value& self, const Arguments& arguments, bool at_end) {
  const ArgumentReader reader(name, arguments, {"prefix", "start", "end"}, 1);
  size_t begin = 0, end = 0;
  if (!searched_part(reader, self.as_text(), begin, end)) return false;
  const std::string_view part = std::string_view(self.str()).substr(begin, end - begin);
  const auto matches = [&](const Value& affix) {
    if (!affix.is_string()) {
      fail("TypeError",
           std::string(name) + " first arg must be str or a tuple of str, not " + type_name(affix));
    }
    return at_end ? part.ends_with(affix.str()) : part.starts_with(affix.str());
  };
  if (!reader[0].is(Kind::kTuple)) return matches(reader[0]);
  return std::any_of(reader[0].items().begin(), reader[0].items().end(), matches);
}

Value starts_with(Runtime& runtime, const Value& self, const Arguments& arguments) {
  runtime.step();
  return Value::boolean(has_affix("startswith", self, arguments, false));
}

Value ends_with(Runtime& runtime, const Value& self, const Arguments& arguments) {
  runtime.step();
  return Value::boolean(has_affix("endswith", self, arguments, true));
}

Value replace(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const ArgumentReader reader("replace", arguments, {"old", "new", "count"}, 2);
  return replace_text(runtime, self.str(), reader.string(0), reader.string(1), reader.integer(2, -1));
}

Value remove_prefix(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const ArgumentReader reader("removeprefix", arguments, {"prefix"}, 1);
  const std::string& affix = reader.string(0);
  return self.str().starts_with(affix) ? runtime.text(self.str().substr(affix.size())) : self;
}

Value remove_suffix(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const ArgumentReader reader("removesuffix", arguments, {"suffix"}, 1);
  const std::string& affix = reader.string(0);
  return self.str().ends_with(affix) ? runtime.text(self.str().substr(0, self.str().size() - affix.size()))
                                     : self;
}

Value format(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return brace_format(runtime, self.str(), arguments);
}

// Not empty, and every character passes.
template <class Predicate>
Value all_characters(Runtime& runtime, const Value& self, Predicate accepts) {
  const std::string& text = self.str();
  runtime.charge_bytes(text.size());
  for (size_t i = 0; i < text.size();) {
    if (!accepts(next_code_point(text, i))) return Value::boolean(false);
  }
  return Value::boolean(!text.empty());
}

// At least one character with case, and none of the other case.
Value all_cased(Runtime& runtime, const Value& self, bool (*refused)(char32_t)) {
  const std::string& text = self.str();
  runtime.charge_bytes(text.size());
  bool cased = false;
  for (size_t i = 0; i < text.size();) {
    const char32_t c = next_code_point(text, i);
    if (refused(c)) return Value::boolean(false);
    cased = cased || is_cased(c);
  }
  return Value::boolean(cased);
}

Value is_all_digits(Runtime& r, const Value& s, const Arguments&) { return all_characters(r, s, is_digit); }
Value is_all_letters(Runtime& r, const Value& s, const Arguments&) { return all_characters(r, s, is_letter); }
Value is_all_spaces(Runtime& r, const Value& s, const Arguments&) { return all_characters(r, s, is_space); }
Value is_all_alphanumeric(Runtime& r, const Value& s, const Arguments&) {
  return all_characters(r, s, [](char32_t c) { return is_letter(c) || is_digit(c); });
}
Value is_all_lower(Runtime& r, const Value& s, const Arguments&) { return all_cased(r, s, is_upper); }
Value is_all_upper(Runtime& r, const Value& s, const Arguments&) { return all_cased(r, s, is_lower); }
Value is_ascii(Runtime&, const Value& s, const Arguments&) {
  return Value::boolean(s.as_text().length == static_cast<int64_t>(s.str().size()));
}

}  // namespace

MethodFunction find_string_method(std::string_view name) {
  static const std::unordered_map<std::string_view, MethodFunction> kMethods = {
      {"upper", upper},
      {"lower", lower},
      {"casefold", lower},
      {"capitalize", capitalize},
      {"title", title},
      {"find", find},
      {"rfind", rfind},
      {"index", index},
      {"rindex", rindex},
      {"count", count},
      {"startswith", starts_with},
      {"endswith", ends_with},
      {"replace", replace},
      {"removeprefix", remove_prefix},
      {"removesuffix", remove_suffix},
      {"format", format},
      {"isdigit", is_all_digits},
      {"isdecimal", is_all_digits},
      {"isnumeric", is_all_digits},
      {"isalpha", is_all_letters},
      {"isalnum", is_all_alphanumeric},
      {"isspace", is_all_spaces},
      {"islower", is_all_lower},
      {"isupper", is_all_upper},
      {"isascii", is_ascii},
  };
  const auto it = kMethods.find(name);
  return it == kMethods.end() ? nullptr : it->second;
}

}  // namespace sluice::jinja
