// Python's operators on values.
#pragma once

#include <string>
#include <string_view>

#include "text/jinja/ast.h"
#include "text/jinja/runtime.h"
#include "text/jinja/value.h"

namespace sluice::jinja {

/// Throws Failure: TypeError, ZeroDivisionError, UndefinedError, or limit where an integer passes 64 bits.
Value apply(Runtime& runtime, ArithmeticOp op, const Value& a, const Value& b);
bool compare(Runtime& runtime, CompareOp op, const Value& a, const Value& b);
Value negated(const Value& value, bool negative);
/// `item in container`.
bool contains(Runtime& runtime, const Value& container, const Value& item);
/// a < b, as sorting uses it.
bool less_than(Runtime& runtime, const Value& a, const Value& b);

/// Position of `needle` from `from` on, or npos. Linear in time, unlike std::string::find.
size_t find_text(std::string_view text, std::string_view needle, size_t from = 0);
/// Text with & < > ' " as HTML entities.
std::string escape_html(Runtime& runtime, std::string_view text);

}  // namespace sluice::jinja
