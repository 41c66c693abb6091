// UTF-8 repair, code points and character classes.
#include "text/utf8.h"

#include <gtest/gtest.h>

#include "text/random_text.h"

namespace sluice {
namespace {

using testing::random_bytes;

std::string repaired(std::string_view bytes) {
  std::string text;
  EXPECT_EQ(append_repaired(text, bytes, true), bytes.size());
  return text;
}

TEST(Utf8, ReplacesEachMaximalInvalidPartByOneCharacter) {
  const std::string r(kReplacementCharacter);
  EXPECT_EQ(repaired("ok \xC3\xA9"), "ok \xC3\xA9");
  EXPECT_EQ(repaired("\xFF\xFE"), r + r);
  EXPECT_EQ(repaired("\xC0\xAF"), r + r);          // overlong
  EXPECT_EQ(repaired("\xE2\x82z"), r + "z");       // a truncated character is one part
  EXPECT_EQ(repaired("\xE2\x82"), r);              // also at the end
  EXPECT_EQ(repaired("\xED\xA0\x80"), r + r + r);  // a surrogate
  EXPECT_EQ(repaired("\xF0\x9F\x98\xF0\x9F\x98\x80"), r + "\xF0\x9F\x98\x80");
  EXPECT_EQ(repaired("\xF4\x90\x80\x80"), r + r + r + r);  // past U+10FFFF
  EXPECT_EQ(repaired(std::string("a\0b", 3)), std::string("a\0b", 3));
}

TEST(Utf8, RepairsBytesTheSameInPiecesAsInOneGo) {
  const unsigned seed = 20261129;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 3000; ++round) {
    const std::string bytes = random_bytes(random, 24);
    std::string pieces, pending;
    for (const char byte : bytes) {
      pending += byte;
      pending.erase(0, append_repaired(pieces, pending, false));
      ASSERT_LE(pending.size(), 3u);
      ASSERT_TRUE(is_valid_utf8(pieces));
    }
    append_repaired(pieces, pending, true);
    ASSERT_EQ(pieces, repaired(bytes));
  }
}

TEST(Utf8, WritesAndReadsEveryKindOfCodePoint) {
  for (const char32_t code :
       {0x0u, 0x7Fu, 0x80u, 0x7FFu, 0x800u, 0xD7FFu, 0xE000u, 0xFFFFu, 0x10000u, 0x10FFFFu}) {
    std::string text;
    append_code_point(text, code);
    EXPECT_TRUE(is_valid_utf8(text));
    EXPECT_EQ(utf8_length(text[0]), text.size());
    size_t position = 0;
    EXPECT_EQ(next_code_point(text, position), code);
    EXPECT_EQ(position, text.size());
  }
}

TEST(Utf8, KnowsWhiteSpaceAndWordCharactersOfUnicode) {
  for (const char32_t code : {0x20, 0x09, 0x0D, 0x85, 0xA0, 0x1680, 0x2003, 0x3000})
    EXPECT_TRUE(is_white_space(code));
  for (const char32_t code : {0x1C, 0x180E, 0x200B, 0xFEFF, 0x41}) EXPECT_FALSE(is_white_space(code));
  for (const char32_t code : {0x61, 0x30, 0x5F, 0xE9, 0x301, 0x4E2D, 0x2160, 0x24B6})
    EXPECT_TRUE(is_word_character(code));
  for (const char32_t code : {0x20, 0x2D, 0x3C, 0xB2, 0x20AC}) EXPECT_FALSE(is_word_character(code));
}

}  // namespace
}  // namespace sluice
