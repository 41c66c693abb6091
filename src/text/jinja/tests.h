// The tests of `is`, by name.
#pragma once

#include <string_view>

#include "text/jinja/runtime.h"
#include "text/jinja/value.h"

namespace sluice::jinja {

using TestFunction = bool (*)(Runtime&, const Value& input, const Arguments&);

/// Null for an unknown name.
TestFunction find_test(std::string_view name);

}  // namespace sluice::jinja
