// Parsed JSON for the readers of this folder. Includes simdjson: for .cc files only.
#pragma once

#include <simdjson.h>

#include <memory>
#include <string>
#include <string_view>

namespace sluice::internal {

/// A parsed document. Elements point into the parser, so whoever keeps an element keeps the document.
struct JsonDocument {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
};

/// Parses `text`, whose top level must be an object. Throws Error kBadFile (`file` in the message) for broken
/// JSON, broken UTF-8, nesting beyond simdjson's limit of 1024, and a key that stands twice in one object:
/// readers would disagree about which of the two counts.
std::shared_ptr<const JsonDocument> parse_json_object(std::string_view text, const std::string& file);

/// "a string", "an array": for "expected a number, found a string".
std::string_view describe_type(const simdjson::dom::element& element);

}  // namespace sluice::internal
