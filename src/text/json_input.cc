// The library's messages quote the input, whatever bytes it has; ours do not.
#include "text/json_input.h"

#include <nlohmann/json.hpp>

namespace sluice {

using Json = nlohmann::ordered_json;

Json parse_json(std::string_view text, const std::string& place, ErrorCode code) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw Error(code, place + ": is no JSON: offset " + std::to_string(error.byte));
  } catch (const Json::out_of_range&) {
    throw Error(code, place + ": a number is too large");
  }
}

}  // namespace sluice
