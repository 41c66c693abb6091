// Hand-written scanners for the regular expressions of published tokenizers.
#pragma once

#include <string_view>

#include "text/regex.h"

namespace sluice {

enum class ScanResult { kMatch, kNone, kUndecided };

/// Sets `match` to what the expression finds first in `text` at or behind `from`, as Regex::find does.
///
/// A scanner knows ASCII alone. Where a character beyond it could matter the result is kUndecided, and
/// `match.begin` is where Regex has to go on from: so PCRE2's Unicode tables are the only ones, and both
/// agree by construction.
using PieceScanner = ScanResult (*)(std::string_view text, size_t from, Regex::Match& match);

/// The scanner of `pattern`; null if it is not, to the letter, one of the known expressions.
PieceScanner find_piece_scanner(std::string_view pattern);

/// The pieces that GPT-2 splits text into (Radford et al. 2019, encoder.py).
inline constexpr std::string_view kGpt2Pieces =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace sluice
