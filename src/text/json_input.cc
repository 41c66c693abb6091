// The library's messages quote the input, whatever bytes it has; ours do not.
#include "text/json_input.h"

#include <nlohmann/json.hpp>

namespace sluice {
namespace {

using Json = nlohmann::ordered_json;

// The library copies, prints and frees a value by recursion, a stack frame a level. Tool definitions have
// twenty levels.
constexpr int kMostLevels = 500;

/// Counts brackets outside of strings; where `text` is no JSON, the parser says so.
bool nests_too_deep(std::string_view text) {
  int levels = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++levels > kMostLevels) return true;
    } else if (c == ']' || c == '}') {
      --levels;
    }
  }
  return false;
}

}  // namespace

Json parse_json(std::string_view text, const std::string& place, ErrorCode code) {
  if (nests_too_deep(text)) {
    throw Error(code, place + ": nests deeper than " + std::to_string(kMostLevels) + " levels");
  }
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw Error(code, place + ": is no JSON: offset " + std::to_string(error.byte));
  } catch (const Json::out_of_range&) {
    throw Error(code, place + ": a number is too large");
  }
}

std::string describe_json(const Json& value) {
  if (value.is_array()) return "an array";
  if (value.is_object()) return "an object";
  return value.dump();
}

}  // namespace sluice
