// JSON that a user or a model's folder gives.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice {

/// Throws Error `code`, in our own words: "PLACE: is no JSON: offset 12", with the bytes counted from 1.
nlohmann::ordered_json parse_json(std::string_view text, const std::string& place, ErrorCode code);

}  // namespace sluice
