// Draws characters from ranges, with one set of ranges a text so that neighbours have something to do with
// each other.
#include "text/random_text.h"

#include <array>
#include <vector>

#include "text/utf8.h"

namespace sluice::testing {
namespace {

struct Range {
  char32_t first, last;
};
constexpr std::array<Range, 19> kRanges = {{{'a', 'f'},
                                            {'a', 'z'},
                                            {' ', '~'},
                                            {'0', '9'},
                                            {0x00, 0x20},
                                            {' ', ' '},
                                            {'\n', '\r'},
                                            {0x85, 0xA0},
                                            {0xC0, 0x17F},
                                            {0x300, 0x362},
                                            {0x1100, 0x11FF},
                                            {0x1E00, 0x1FFF},
                                            {0x2000, 0x2030},
                                            {0x4E00, 0x4EFF},
                                            {0xAC00, 0xAC40},
                                            {0x900, 0x9FF},
                                            {0x1D15E, 0x1D165},
                                            {0x1F600, 0x1F640},
                                            {0x00, 0x10FFFF}}};

int below(std::mt19937& random, int limit) {
  return static_cast<int>(random() % static_cast<unsigned>(limit));
}

}  // namespace

std::string random_text(std::mt19937& random, int max_characters) {
  std::string text;
  const int kinds = 1 + below(random, 4);
  std::vector<Range> ranges;
  for (int i = 0; i < kinds; ++i)
    ranges.push_back(kRanges[static_cast<size_t>(below(random, kRanges.size()))]);
  const int count = below(random, max_characters + 1);
  for (int i = 0; i < count; ++i) {
    const Range range = ranges[static_cast<size_t>(below(random, kinds))];
    const char32_t code = range.first + static_cast<char32_t>(random() % (range.last - range.first + 1));
    if (code < 0xD800 || code > 0xDFFF) append_code_point(text, code);
  }
  return text;
}

std::string random_bytes(std::mt19937& random, int max_bytes) {
  constexpr std::string_view kParts =
      "\xE2\x82\xAC\xF0\x9F\x98\x80\xC3\xA9\xED\xA0\xE0\x80\xF4\x90\xC0\xFF\xEF\xBF\xBD";
  std::string bytes;
  const int count = below(random, max_bytes + 1);
  for (int i = 0; i < count; ++i) {
    const int kind = below(random, 4);
    if (kind == 0) bytes += static_cast<char>(below(random, 256));
    if (kind == 1) bytes += static_cast<char>('a' + below(random, 26));
    if (kind >= 2) bytes += kParts[static_cast<size_t>(below(random, static_cast<int>(kParts.size())))];
  }
  return bytes;
}

}  // namespace sluice::testing
