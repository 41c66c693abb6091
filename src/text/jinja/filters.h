// The filters, by name.
#pragma once

#include <string_view>
#include <unordered_map>

#include "text/jinja/runtime.h"
#include "text/jinja/value.h"

namespace sluice::jinja {

using FilterFunction = Value (*)(Runtime&, const Value& input, const Arguments&);
using FilterTable = std::unordered_map<std::string_view, FilterFunction>;

/// Null for an unknown name.
FilterFunction find_filter(std::string_view name);

// The table is put together from these.
const FilterTable& text_filters();
const FilterTable& value_filters();
const FilterTable& sequence_filters();
const FilterTable& selection_filters();

}  // namespace sluice::jinja
