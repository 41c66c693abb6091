// What a terminal would obey is escaped, all else is left as it is.
#include "base/printable.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Printable, EscapesControlsMarksOfDirectionAndBytesThatAreNoUtf8) {
  EXPECT_EQ(printable("a\x1b[31mb\nc\td\re"), "a\\x1b[31mb\\nc\\td\\re");
  EXPECT_EQ(printable(std::string_view("\0\x7f", 2)), "\\x00\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"), "\\u009b") << "one of the C1 controls";
  EXPECT_EQ(printable("\xe2\x80\xae|\xe2\x81\xa6"), "\\u202e|\\u2066");
  EXPECT_EQ(printable("a\xff\xc3"), "a\\xff\\xc3");
  EXPECT_EQ(printable("\xc0\xaf \xed\xa0\x80 \xf4\x90\x80\x80"),
            "\\xc0\\xaf \\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80")
      << "overlong, a surrogate, beyond the last character";
  EXPECT_EQ(printable("h\u00e9llo \u4e16\u754c \U0001F680"), "h\u00e9llo \u4e16\u754c \U0001F680");
}

TEST(Printable, ALongLineLosesItsMiddleAndNoHalfCharacterIsLeft) {
  EXPECT_EQ(printable_line("12345678", 8), "12345678");
  EXPECT_EQ(printable_line("abcdefghijklmnopqrst", 8), "abcdef [... 12 bytes ...] st");
  std::string wide;
  for (int i = 0; i < 1000; ++i) wide += "\u4e16";
  for (size_t most = 1; most < 20; ++most) {
    const std::string cut = printable_line(wide, most);
    EXPECT_EQ(printable(cut), cut) << most;
    EXPECT_LE(cut.size(), most + 30);
  }
}

}  // namespace
}  // namespace sluice
