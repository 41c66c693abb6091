// Functions that every template sees: range, dict, namespace, cycler, joiner, raise_exception, strftime_now.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace sluice::jinja {

const std::vector<std::pair<std::string, Value>>& global_functions();

}  // namespace sluice::jinja
