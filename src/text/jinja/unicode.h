// Characters of UTF-8 text, as Python's str sees them: one code point is one character.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::jinja {

/// The code point that starts at `text[position]`, and moves `position` past it. A byte that starts no
/// character is U+FFFD. Needs position < text.size().
char32_t next_code_point(std::string_view text, size_t& position);
void append_code_point(std::string& text, char32_t code_point);

/// A copy in which every invalid sequence is U+FFFD; the interpreter works on valid text only.
std::string valid_utf8(std::string_view text);

int64_t count_code_points(std::string_view valid_text);
/// Byte offset of character `index`; the size of the text if it has fewer characters.
size_t byte_offset(std::string_view valid_text, int64_t index);

bool is_space(char32_t c);      // str.isspace
bool is_printable(char32_t c);  // str.isprintable: decides what repr() escapes
bool is_letter(char32_t c);     // str.isalpha
bool is_digit(char32_t c);      // a decimal digit of any script
bool is_upper(char32_t c);
bool is_lower(char32_t c);
bool is_cased(char32_t c);

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
/// First character in title case, the others in lower case (str.capitalize).
std::string to_capitalized(std::string_view text);

}  // namespace sluice::jinja
