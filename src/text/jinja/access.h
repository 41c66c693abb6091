// Attributes, items and slices, in the order in which Jinja's immutable sandbox looks for them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/jinja/runtime.h"
#include "text/jinja/value.h"

namespace sluice::jinja {

/// `object.name`: a method or attribute, else the item `name`, else undefined. Throws Failure where `object`
/// is undefined.
Value get_attribute(Runtime& runtime, const Value& object, const std::string& name);
/// `object[index]`: the item, else the method or attribute of that name, else undefined.
Value get_item(Runtime& runtime, const Value& object, const Value& index);
/// Python's slice; a bound that is null or none is left out.
Value get_slice(Runtime& runtime, const Value& object, const Value* start, const Value* stop,
                const Value* step);

/// A path such as "function.name" or "0.role", each part looked up as an item (filters' `attribute`
/// argument).
Value get_path(Runtime& runtime, const Value& object, const Value& path);

/// Part of a text by characters.
std::string substring(const Text& text, int64_t begin, int64_t count);

}  // namespace sluice::jinja
