// Work on text that methods and filters share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/runtime.h"
#include "text/jinja/value.h"

namespace sluice::jinja {

/// `text` without leading and trailing characters of `characters`; null: white space.
std::string_view stripped(std::string_view text, const std::string* characters, bool left, bool right);
/// Lines at every character that Python's splitlines takes for an end of line.
std::vector<std::string_view> split_lines(Runtime& runtime, std::string_view text, bool keep_ends);
/// All, or the first `count` (if >= 0), occurrences replaced. An empty `old` matches between all characters.
Value replace_text(Runtime& runtime, std::string_view text, std::string_view old,
                   std::string_view replacement, int64_t count);

// An odd rest of the padding: str.center and format() put it on different sides.
enum class Alignment { kLeft, kCenter, kRight, kFormatCenter };
/// `text` padded with `fill`, one character, to `width` characters.
Value padded(Runtime& runtime, const Text& text, int64_t width, std::string_view fill, Alignment alignment);

}  // namespace sluice::jinja
