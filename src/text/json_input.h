// JSON that a user or a model's folder gives.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice {

/// Throws Error `code`, in our own words: "PLACE: is no JSON: offset 12", with the bytes counted from 1; also
/// for more than 500 levels of arrays and objects inside each other.
nlohmann::ordered_json parse_json(std::string_view text, const std::string& place, ErrorCode code);

/// For "expected an id, found ...": "an array", "an object", anything else as it stands: 1.5, "a", null.
std::string describe_json(const nlohmann::ordered_json& value);

}  // namespace sluice
