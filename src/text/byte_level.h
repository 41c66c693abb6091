// The byte alphabet of GPT-2: each byte is written as one printable character, so that vocabularies are text.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

/// Turns a token as the vocabulary writes it into the bytes it stands for. Returns false, with `bytes`
/// unspecified, if the token has a character outside the alphabet; such a token stands for its own UTF-8.
bool bytes_from_alphabet(std::string_view token, std::string& bytes);

}  // namespace sluice
