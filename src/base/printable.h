// Text from elsewhere, made fit for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

/// UTF-8 in which nothing steers a terminal or breaks the line: control characters, the marks that turn the
/// direction of text, and bytes that are no UTF-8 become escapes: \n, \t, \x1b, \u202e.
std::string printable(std::string_view text);
/// printable(text), with the middle left out ("[... 30000 bytes ...]") where it is longer than `most_bytes`.
std::string printable_line(std::string_view text, size_t most_bytes);

}  // namespace sluice
