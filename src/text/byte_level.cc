// The byte alphabet: printable Latin-1 characters stand for themselves, the other 68 bytes for U+0100 and up,
// in order.
#include "text/byte_level.h"

#include <array>
#include <cstdint>

#include "text/utf8.h"

namespace sluice {
namespace {

constexpr bool is_printable(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

constexpr int kAlphabetEnd = 0x100 + 68;

constexpr std::array<int16_t, kAlphabetEnd> kByteOfCodePoint = [] {
  std::array<int16_t, kAlphabetEnd> table{};
  for (auto& entry : table) entry = -1;
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    table[static_cast<size_t>(is_printable(byte) ? byte : next++)] = static_cast<int16_t>(byte);
  }
  return table;
}();

}  // namespace

bool append_from_alphabet(std::string_view token, std::string& bytes) {
  const size_t old_size = bytes.size();
  bytes.resize(old_size + token.size());  // no character stands for more bytes than it has
  char* out = bytes.data() + old_size;
  for (size_t position = 0; position < token.size();) {
    const char32_t code = next_code_point(token, position);
    if (code >= kAlphabetEnd || kByteOfCodePoint[code] < 0) {
      bytes.resize(old_size);
      return false;
    }
    *out++ = static_cast<char>(kByteOfCodePoint[code]);
  }
  bytes.resize(static_cast<size_t>(out - bytes.data()));
  return true;
}

}  // namespace sluice
