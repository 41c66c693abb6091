// Stripping, lines, replacement and padding.
#include "text/jinja/text_tools.h"

#include <algorithm>
#include <limits>

#include "text/jinja/operators.h"
#include "text/jinja/unicode.h"

namespace sluice::jinja {
namespace {

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

bool ends_line(char32_t c) {
  return (c >= '\n' && c <= '\r') || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

}  // namespace

std::string_view stripped(std::string_view text, const std::string* characters, bool left, bool right) {
  const auto removed = [&](std::string_view character) {
    if (characters != nullptr) return characters->find(character) != std::string::npos;
    size_t position = 0;
    return is_space(next_code_point(character, position));
  };
  while (left && !text.empty()) {
    size_t size = 0;
    next_code_point(text, size);
    if (!removed(text.substr(0, size))) break;
    text.remove_prefix(size);
  }
  while (right && !text.empty()) {
    size_t start = text.size() - 1;
    while (start > 0 && is_continuation(text[start])) --start;
    if (!removed(text.substr(start))) break;
    text = text.substr(0, start);
  }
  return text;
}

std::vector<std::string_view> split_lines(Runtime& runtime, std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  size_t begin = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t end = i;
    const char32_t c = next_code_point(text, i);
    if (!ends_line(c)) continue;
    runtime.step();
    if (c == '\r' && i < text.size() && text[i] == '\n') ++i;
    lines.push_back(text.substr(begin, (keep_ends ? i : end) - begin));
    begin = i;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

Value replace_text(Runtime& runtime, std::string_view text, std::string_view old,
                   std::string_view replacement, int64_t count) {
  int64_t left = count < 0 ? std::numeric_limits<int64_t>::max() : count;
  TextBuilder result(runtime);
  runtime.charge_bytes(text.size());
  size_t position = 0;
  if (old.empty()) {
    for (; left > 0; --left) {
      result.append(replacement);
      if (position == text.size()) break;
      const size_t start = position;
      next_code_point(text, position);
      result.append(text.substr(start, position - start));
    }
    return result.append(text.substr(position)).value();
  }
  for (; left > 0; --left) {
    const size_t found = find_text(text, old, position);
    if (found == std::string::npos) break;
    result.append(text.substr(position, found - position)).append(replacement);
    position = found + old.size();
  }
  return result.append(text.substr(position)).value();
}

Value padded(Runtime& runtime, const Text& text, int64_t width, std::string_view fill, Alignment alignment) {
  const int64_t padding = std::max<int64_t>(width - text.length, 0);
  int64_t before = alignment == Alignment::kRight ? padding : 0;
  if (alignment == Alignment::kFormatCenter) before = padding / 2;
  if (alignment == Alignment::kCenter)
    before = padding / 2 + (padding & width & 1);  // Python's rule for an odd rest
  TextBuilder result(runtime);
  return result.repeat(fill, before).append(text.utf8).repeat(fill, padding - before).value();
}

}  // namespace sluice::jinja
