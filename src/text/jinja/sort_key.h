// Keys by which filters order and compare elements.
#pragma once

#include "text/jinja/runtime.h"
#include "text/jinja/value.h"

namespace sluice::jinja {

struct KeyedItem {
  Value key;
  Value item;
};

/// Each item with its key: `attribute` of it (undefined or none: the item itself; "a,b": a list of several),
/// in lower case where text and `ignore_case`; `otherwise` in place of an undefined attribute where given.
std::vector<KeyedItem> keyed_items(Runtime& runtime, const Value& input, const Value& attribute,
                                   bool ignore_case, const Value* otherwise = nullptr);
/// Stable, by key. Throws Failure (TypeError) for keys without an order.
void sort_by_key(Runtime& runtime, std::vector<KeyedItem>& items, bool reverse);

}  // namespace sluice::jinja
