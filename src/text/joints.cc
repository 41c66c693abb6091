// Walks over tokens and texts by characters.
#include "text/joints.h"

#include "text/utf8.h"

namespace sluice {

void Joints::add_token(std::string_view token) {
  if (token.empty()) return;
  size_t position = 0;
  char32_t left = next_code_point(token, position);
  while (position < token.size()) {
    const char32_t right = next_code_point(token, position);
    const size_t bit = bit_of(left, right);
    bits_[bit >> 6] |= uint64_t{1} << (bit & 63);
    left = right;
  }
}

size_t Joints::end_of_part(std::string_view text, size_t begin) const {
  size_t position = begin;
  char32_t left = next_code_point(text, position);
  while (position < text.size()) {
    const size_t end = position;
    const char32_t right = next_code_point(text, position);
    if (!joins(left, right)) return end;
    left = right;
  }
  return position;
}

}  // namespace sluice
