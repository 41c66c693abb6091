// The byte alphabet of GPT-2: each byte is written as one printable character, so that vocabularies are text.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

/// Appends the bytes that a token stands for, as the vocabulary writes it (valid UTF-8). Returns false, and
/// appends nothing, if it has a character outside the alphabet; such a token stands for its own UTF-8.
bool append_from_alphabet(std::string_view token, std::string& bytes);

}  // namespace sluice
