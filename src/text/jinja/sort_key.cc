// Sorting by key.
#include "text/jinja/sort_key.h"

#include <algorithm>

#include "text/jinja/access.h"
#include "text/jinja/operators.h"
#include "text/jinja/unicode.h"

namespace sluice::jinja {
namespace {

Value folded(Runtime& runtime, Value value, bool ignore_case) {
  return ignore_case && value.is_string() ? runtime.text(to_lower(value.str())) : value;
}

Value attribute_of(Runtime& runtime, const Value& item, const Value& path, const Value* otherwise) {
  Value value = get_path(runtime, item, path);
  return value.is_undefined() && otherwise != nullptr ? *otherwise : value;
}

Value key_of(Runtime& runtime, const Value& item, const Value& attribute, bool ignore_case,
             const Value* otherwise) {
  if (attribute.is_undefined() || attribute.is(Kind::kNone)) return folded(runtime, item, ignore_case);
  const bool several = attribute.is_string() && attribute.str().find(',') != std::string::npos;
  if (!several) return folded(runtime, attribute_of(runtime, item, attribute, otherwise), ignore_case);
  ValueList keys;
  const std::string& text = attribute.str();
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const Value path = Value::text(text.substr(begin, end - begin));
    keys.push_back(folded(runtime, attribute_of(runtime, item, path, otherwise), ignore_case));
    begin = end + 1;
  }
  return runtime.list(std::move(keys));
}

}  // namespace

std::vector<KeyedItem> keyed_items(Runtime& runtime, const Value& input, const Value& attribute,
                                   bool ignore_case, const Value* otherwise) {
  std::vector<KeyedItem> keyed;
  for (const Value& item : iterate(runtime, input)) {
    keyed.push_back({key_of(runtime, item, attribute, ignore_case, otherwise), item});
    runtime.step(keyed.back().key.weight());
  }
  return keyed;
}

void sort_by_key(Runtime& runtime, std::vector<KeyedItem>& items, bool reverse) {
  std::stable_sort(items.begin(), items.end(), [&](const KeyedItem& a, const KeyedItem& b) {
    return reverse ? less_than(runtime, b.key, a.key) : less_than(runtime, a.key, b.key);
  });
}

}  // namespace sluice::jinja
