// JSON through simdjson's DOM, which validates the whole text before anything is read from it.
#include "checkpoint/json.h"

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace sluice::internal {
namespace {

namespace dom = simdjson::dom;

// A key that stands twice, or a null view. `keys` is room to work in: a header may hold a million small
// objects.
std::string_view repeated_key(const dom::object& object, std::vector<std::string_view>& keys) {
  keys.clear();
  for (const auto& field : object) keys.push_back(field.key);
  std::sort(keys.begin(), keys.end());
  const auto twin = std::adjacent_find(keys.begin(), keys.end());
  return twin == keys.end() ? std::string_view() : *twin;
}

// Recursion is bounded by the parser's depth limit.
void refuse_repeated_keys(const dom::element& element, const std::string& file,
                          std::vector<std::string_view>& keys) {
  if (element.is_array()) {
    for (const dom::element item : dom::array(element)) {
      if (item.is_array() || item.is_object()) refuse_repeated_keys(item, file, keys);
    }
  } else if (element.is_object()) {
    const dom::object object(element);
    if (const std::string_view key = repeated_key(object, keys); key.data() != nullptr) {
      throw Error(ErrorCode::kBadFile,
                  file + ": the key '" + std::string(key) + "' stands twice in one object");
    }
    for (const auto& field : object) {
      if (field.value.is_array() || field.value.is_object()) refuse_repeated_keys(field.value, file, keys);
    }
  }
}

}  // namespace

std::shared_ptr<const JsonDocument> parse_json_object(std::string_view text, const std::string& file) {
  auto document = std::make_shared<JsonDocument>();
  // The parser copies the text into a buffer with the padding that it needs.
  const auto code = document->parser.parse(text.data(), text.size(), true).get(document->root);
  if (code != simdjson::SUCCESS) {
    throw Error(ErrorCode::kBadFile, file + ": not valid JSON: " + simdjson::error_message(code));
  }
  if (!document->root.is_object()) {
    throw Error(ErrorCode::kBadFile, file + ": expected an object at the top level, found " +
                                         std::string(describe_type(document->root)));
  }
  std::vector<std::string_view> keys;
  refuse_repeated_keys(document->root, file, keys);
  return document;
}

std::string_view describe_type(const dom::element& element) {
  switch (element.type()) {
    case dom::element_type::ARRAY:
      return "an array";
    case dom::element_type::OBJECT:
      return "an object";
    case dom::element_type::INT64:
    case dom::element_type::UINT64:
      return "an integer";
    case dom::element_type::DOUBLE:
      return "a number with a fraction";
    case dom::element_type::STRING:
      return "a string";
    case dom::element_type::BOOL:
      return "a boolean";
    case dom::element_type::NULL_VALUE:
      return "null";
  }
  return "something else";
}

}  // namespace sluice::internal
