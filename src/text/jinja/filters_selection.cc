// map, select, reject, selectattr, rejectattr: filters that apply another filter or test to each element.
#include "text/jinja/access.h"
#include "text/jinja/failure.h"
#include "text/jinja/filters.h"

namespace sluice::jinja {
namespace {

// The arguments after the first `count`, for the inner filter or test.
Arguments rest_of(const Arguments& arguments, size_t count) {
  Arguments rest;
  if (arguments.positional.size() > count) {
    rest.positional.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(count),
                           arguments.positional.end());
  }
  rest.named = arguments.named;
  return rest;
}

std::string name_argument(const Arguments& arguments, size_t index, const char* what) {
  const Value& name = arguments.positional[index];
  if (!name.is_string()) fail("TemplateRuntimeError", std::string("No ") + what + " of that type.");
  return name.str();
}

Value map_attribute(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Value *attribute = nullptr, *otherwise = nullptr;
  for (const auto& [name, value] : arguments.named) {
    if (name == "attribute") {
      attribute = &value;
    } else if (name == "default") {
      otherwise = &value;
    } else {
      fail("FilterArgumentError", "Unexpected keyword argument '" + name + "'");
    }
  }
  if (attribute == nullptr) fail("FilterArgumentError", "map requires a filter argument");
  ValueList results;
  for (const Value& item : iterate(runtime, input)) {
    Value value = get_path(runtime, item, *attribute);
    results.push_back(value.is_undefined() && otherwise != nullptr ? *otherwise : std::move(value));
  }
  return runtime.iterator(std::move(results));
}

Value map(Runtime& runtime, const Value& input, const Arguments& arguments) {
  if (arguments.positional.empty()) return map_attribute(runtime, input, arguments);
  const std::string name = name_argument(arguments, 0, "filter");
  const Arguments rest = rest_of(arguments, 1);
  ValueList results;
  for (const Value& item : iterate(runtime, input)) results.push_back(runtime.filter(name, item, rest));
  return runtime.iterator(std::move(results));
}

// Elements whose test gives `wanted`; the test is the argument after the attribute, if there is one, else
// truth.
Value choose(Runtime& runtime, const Value& input, const Arguments& arguments, bool wanted,
             bool by_attribute) {
  if (by_attribute && arguments.positional.empty()) {
    fail("FilterArgumentError", "Missing parameter for attribute name");
  }
  const size_t skipped = by_attribute ? 1 : 0;
  const bool has_test = arguments.positional.size() > skipped;
  const std::string name = has_test ? name_argument(arguments, skipped, "test") : std::string();
  const Arguments rest = rest_of(arguments, skipped + 1);
  ValueList kept;
  for (const Value& item : iterate(runtime, input)) {
    runtime.step();
    const Value subject = by_attribute ? get_path(runtime, item, arguments.positional[0]) : item;
    const bool result = has_test ? runtime.test(name, subject, rest) : truthy(subject);
    if (result == wanted) kept.push_back(item);
  }
  return runtime.iterator(std::move(kept));
}

Value select(Runtime& r, const Value& input, const Arguments& a) { return choose(r, input, a, true, false); }
Value reject(Runtime& r, const Value& input, const Arguments& a) { return choose(r, input, a, false, false); }
Value select_attribute(Runtime& r, const Value& input, const Arguments& a) {
  return choose(r, input, a, true, true);
}
Value reject_attribute(Runtime& r, const Value& input, const Arguments& a) {
  return choose(r, input, a, false, true);
}

}  // namespace

const FilterTable& selection_filters() {
  static const FilterTable kTable = {
      {"map", map},
      {"select", select},
      {"reject", reject},
      {"selectattr", select_attribute},
      {"rejectattr", reject_attribute},
  };
  return kTable;
}

}  // namespace sluice::jinja
