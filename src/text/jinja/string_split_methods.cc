// Methods of str that take text apart or put it together.
#include <algorithm>
#include <unordered_map>

#include "text/jinja/argument_reader.h"
#include "text/jinja/failure.h"
#include "text/jinja/methods.h"
#include "text/jinja/operators.h"
#include "text/jinja/text_tools.h"
#include "text/jinja/unicode.h"

namespace sluice::jinja {
namespace {

// Splits at runs of white space. From the right the pieces are found in reverse.
ValueList split_words(Runtime& runtime, std::string_view text, int64_t limit, bool from_right) {
  ValueList pieces;
  std::string_view rest =
      from_right ? stripped(text, nullptr, false, true) : stripped(text, nullptr, true, false);
  while (!rest.empty() && (limit < 0 || static_cast<int64_t>(pieces.size()) < limit)) {
    size_t cut = from_right ? 0 : rest.size();  // end of the word, or its start
    for (size_t i = 0; i < rest.size();) {
      const size_t start = i;
      if (!is_space(next_code_point(rest, i))) continue;
      cut = from_right ? i : start;
      if (!from_right) break;
    }
    pieces.push_back(runtime.text(std::string(from_right ? rest.substr(cut) : rest.substr(0, cut))));
    rest = from_right ? stripped(rest.substr(0, cut), nullptr, false, true)
                      : stripped(rest.substr(cut), nullptr, true, false);
    if (from_right) runtime.charge_bytes(rest.size());
  }
  if (!rest.empty()) pieces.push_back(runtime.text(std::string(rest)));  // keeps white space at its far end
  if (from_right) std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

ValueList split_at(Runtime& runtime, std::string_view text, std::string_view separator, int64_t limit,
                   bool from_right) {
  std::vector<size_t> matches;
  const auto wanted = [&] { return limit < 0 || static_cast<int64_t>(matches.size()) < limit; };
  if (from_right) {  // overlapping matches are found differently from this side: "aaa".rsplit("aa") is ["a",
                     // ""]
    runtime.step(static_cast<int64_t>(text.size() / kBytesPerStep * separator.size() / kBytesPerStep));
    for (size_t end = text.size(); separator.size() <= end && wanted(); end = matches.back()) {
      const size_t at = text.substr(0, end).rfind(separator);
      if (at == std::string_view::npos) break;
      matches.push_back(at);
    }
    std::reverse(matches.begin(), matches.end());
  } else {
    for (size_t from = 0; wanted(); from = matches.back() + separator.size()) {
      const size_t at = find_text(text, separator, from);
      if (at == std::string_view::npos) break;
      matches.push_back(at);
    }
  }
  ValueList pieces;
  size_t begin = 0;
  for (const size_t at : matches) {
    pieces.push_back(runtime.text(std::string(text.substr(begin, at - begin))));
    begin = at + separator.size();
  }
  pieces.push_back(runtime.text(std::string(text.substr(begin))));
  return pieces;
}

Value split_with(Runtime& runtime, const char* name, const Value& self, const Arguments& arguments,
                 bool from_right) {
  const ArgumentReader reader(name, arguments, {"sep", "maxsplit"});
  const int64_t limit = reader.integer(1, -1);
  runtime.charge_bytes(self.str().size());
  if (!reader.given(0)) return runtime.list(split_words(runtime, self.str(), limit, from_right));
  const std::string& separator = reader.string(0);
  if (separator.empty()) fail("ValueError", "empty separator");
  return runtime.list(split_at(runtime, self.str(), separator, limit, from_right));
}

Value split(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return split_with(runtime, "split", self, arguments, false);
}

Value rsplit(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return split_with(runtime, "rsplit", self, arguments, true);
}

Value split_lines_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const ArgumentReader reader("splitlines", arguments, {"keepends"});
  runtime.charge_bytes(self.str().size());
  ValueList lines;
  for (const std::string_view line : split_lines(runtime, self.str(), reader.flag(0, false))) {
    lines.push_back(runtime.text(std::string(line)));
  }
  return runtime.list(std::move(lines));
}

Value partition_with(Runtime& runtime, const char* name, const Value& self, const Arguments& arguments,
                     bool from_right) {
  const ArgumentReader reader(name, arguments, {"sep"}, 1);
  const std::string& separator = reader.string(0);
  if (separator.empty()) fail("ValueError", "empty separator");
  const ValueList pieces = split_at(runtime, self.str(), separator, 1, from_right);
  const Value nothing = Value::text("");
  if (pieces.size() == 2) return Value::tuple({pieces[0], reader[0], pieces[1]});
  return from_right ? Value::tuple({nothing, nothing, self}) : Value::tuple({self, nothing, nothing});
}

Value partition(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return partition_with(runtime, "partition", self, arguments, false);
}

Value rpartition(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return partition_with(runtime, "rpartition", self, arguments, true);
}

Value strip_with(Runtime& runtime, const char* name, const Value& self, const Arguments& arguments, bool left,
                 bool right) {
  const ArgumentReader reader(name, arguments, {"chars"});
  runtime.charge_bytes(self.str().size());
  const std::string* characters = reader.given(0) ? &reader.string(0) : nullptr;
  return Value::text(std::string(stripped(self.str(), characters, left, right)));
}

Value strip(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return strip_with(runtime, "strip", self, arguments, true, true);
}

Value lstrip(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return strip_with(runtime, "lstrip", self, arguments, true, false);
}

Value rstrip(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return strip_with(runtime, "rstrip", self, arguments, false, true);
}

Value join(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const ArgumentReader reader("join", arguments, {"iterable"}, 1);
  TextBuilder joined(runtime);
  bool first = true;
  size_t position = 0;
  for (const Value& item : iterate(runtime, reader[0])) {
    if (!item.is_string()) {
      fail("TypeError", "sequence item " + std::to_string(position) + ": expected str instance, " +
                            type_name(item) + " found");
    }
    if (!first) joined.append(self.str());
    first = false;
    ++position;
    joined.append(item.str());
  }
  return joined.value();
}

Value pad_with(Runtime& runtime, const char* name, const Value& self, const Arguments& arguments,
               Alignment alignment) {
  const ArgumentReader reader(name, arguments, {"width", "fillchar"}, 1);
  const std::string fill = reader.string(1, " ");
  if (count_code_points(fill) != 1)
    fail("TypeError", "The fill character must be exactly one character long");
  return padded(runtime, self.as_text(), reader.integer(0, 0), fill, alignment);
}

Value ljust(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return pad_with(runtime, "ljust", self, arguments, Alignment::kLeft);
}

Value rjust(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return pad_with(runtime, "rjust", self, arguments, Alignment::kRight);
}

Value center(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return pad_with(runtime, "center", self, arguments, Alignment::kCenter);
}

Value zfill(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const ArgumentReader reader("zfill", arguments, {"width"}, 1);
  const std::string& text = self.str();
  const size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  TextBuilder result(runtime);
  result.append(text.substr(0, sign)).repeat("0", reader.integer(0, 0) - self.as_text().length);
  return result.append(text.substr(sign)).value();
}

}  // namespace

MethodFunction find_string_split_method(std::string_view name) {
  static const std::unordered_map<std::string_view, MethodFunction> kMethods = {
      {"split", split},         {"rsplit", rsplit},         {"splitlines", split_lines_method},
      {"partition", partition}, {"rpartition", rpartition}, {"strip", strip},
      {"lstrip", lstrip},       {"rstrip", rstrip},         {"join", join},
      {"ljust", ljust},         {"rjust", rjust},           {"center", center},
      {"zfill", zfill},
  };
  const auto it = kMethods.find(name);
  return it == kMethods.end() ? nullptr : it->second;
}

}  // namespace sluice::jinja
