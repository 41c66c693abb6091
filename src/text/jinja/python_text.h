// str() and repr() of values as Python writes them.
#pragma once

#include <string>

#include "text/jinja/runtime.h"
#include "text/jinja/value.h"

namespace sluice::jinja {

/// The shortest digits that read back as `value`: 1.0, 0.1, 1e+16, inf, nan.
std::string float_repr(double value);
std::string string_repr(std::string_view text);

/// str(): text as it is, undefined as nothing.
std::string to_text(Runtime& runtime, const Value& value);
void append_text(TextBuilder& out, const Value& value);
void append_repr(TextBuilder& out, const Value& value);

}  // namespace sluice::jinja
