// Methods of strings, dicts and lists.
#pragma once

#include <string_view>

#include "text/jinja/runtime.h"
#include "text/jinja/value.h"

namespace sluice::jinja {

using MethodFunction = Value (*)(Runtime&, const Value& self, const Arguments&);

/// The method `name` bound to `self`; false where Python's type has none. A method that Python has and this
/// interpreter does not is found too, and its call throws Failure (limit).
bool find_method(const Value& self, std::string_view name, Value& method);
/// Methods that change their object: the immutable sandbox of the reference refuses them.
bool is_mutating_method(Kind kind, std::string_view name);

MethodFunction find_string_method(std::string_view name);  // changes of case, searches, tests of characters
MethodFunction find_string_split_method(std::string_view name);  // splitting, joining, stripping, padding

}  // namespace sluice::jinja
