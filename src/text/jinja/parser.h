// Jinja source to a syntax tree.
#pragma once

#include <string_view>

#include "text/jinja/ast.h"

namespace sluice::jinja {

/// Parses `source`. Throws Error kBadFile (line and column) for a syntax error, kUnsupported for include,
/// import, extends and block, and where it nests deeper than 100 levels.
Template parse_template(std::string_view source);

}  // namespace sluice::jinja
