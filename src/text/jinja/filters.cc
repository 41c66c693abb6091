// The table of filters.
#include "text/jinja/filters.h"

namespace sluice::jinja {

FilterFunction find_filter(std::string_view name) {
  static const FilterTable kAll = [] {
    FilterTable all = text_filters();
    for (const FilterTable* part : {&value_filters(), &sequence_filters(), &selection_filters()}) {
      all.insert(part->begin(), part->end());
    }
    return all;
  }();
  const auto it = kAll.find(name);
  return it == kAll.end() ? nullptr : it->second;
}

}  // namespace sluice::jinja
