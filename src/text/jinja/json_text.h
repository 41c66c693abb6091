// json.dumps as chat templates use it, and values of JSON documents.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "text/jinja/runtime.h"
#include "text/jinja/value.h"

namespace sluice::jinja {

struct JsonStyle {
  bool ensure_ascii = false;
  bool indented = false;
  std::string indent;  // one level; with `indented`
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};

/// Throws Failure (TypeError) for what JSON can't hold.
Value to_json_text(Runtime& runtime, const Value& value, const JsonStyle& style);

/// Integers of more than 64 signed bits become floats. Throws Failure (limit) past kMaxValueDepth.
Value from_json(const nlohmann::ordered_json& json);

}  // namespace sluice::jinja
