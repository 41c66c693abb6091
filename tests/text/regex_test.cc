// Regular expressions: Oniguruma's meaning on PCRE2, and the refusal of what differs.
#include "text/regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/expect_error.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using testing::expect_error;

std::vector<std::string> matches(std::string_view pattern, std::string_view text) {
  const Regex regex(pattern, "test");
  std::vector<std::string> found;
  size_t from = 0;
  for (Regex::Match match; regex.find(text, from, match); from = match.end) {
    found.emplace_back(text.substr(match.begin, match.end - match.begin));
  }
  return found;
}

TEST(Regex, CountsTheWhiteSpaceOfUnicodeAsSpace) {
  EXPECT_THAT(matches("\\s+", "a\u0085\u00A0\u2003b\u3000"), ElementsAre("\u0085\u00A0\u2003", "\u3000"));
  EXPECT_THAT(matches("\\s", "\u180E\u200B\uFEFF"), ElementsAre());
  EXPECT_THAT(matches("[^\\s]+", "\u180E \u200B"), ElementsAre("\u180E", "\u200B"));
  EXPECT_THAT(matches("\\S+", "x\u00A0y"), ElementsAre("x", "y"));
}

TEST(Regex, CountsMarksAndConnectorsAsPartsOfWords) {
  EXPECT_THAT(matches("\\w+", "e\u0301t\u203F1 \u00B2"), ElementsAre("e\u0301t\u203F1"));
  EXPECT_THAT(matches("[\\w-]+", "a-b c"), ElementsAre("a-b", "c"));
  EXPECT_THAT(matches("\\W+", "a, b"), ElementsAre(", "));
  EXPECT_THAT(matches("\\d+", "12\u0663\u00B2"), ElementsAre("12\u0663"));
}

TEST(Regex, IgnoresCaseInsideTheGroupOnly) {
  EXPECT_THAT(matches("(?i:'LL)|x", "'ll 'LL x X"), ElementsAre("'ll", "'LL", "x"));
  EXPECT_THAT(matches("(?i:'s)", "'\u017F"), ElementsAre("'\u017F"));  // long s folds to s
}

TEST(Regex, LooksAheadOverTheWholeSubject) {
  EXPECT_THAT(matches("\\s+(?!\\S)|\\s+", "a   b  "), ElementsAre("  ", " ", "  "));
}

TEST(Regex, MatchesLineEndsAsRubyDoes) {
  EXPECT_THAT(matches("^.", "ab\ncd"), ElementsAre("a", "c"));
  EXPECT_THAT(matches(".$", "ab\ncd\r\n"), ElementsAre("b", "\r"));
}

TEST(Regex, ReadsEscapesOfCharacters) {
  EXPECT_THAT(matches("[\\u4e00-\\u4e2d\\x41\\x{3b1}]+\\/\\-", "\u4e2dA\u03b1/-"),
              ElementsAre("\u4e2dA\u03b1/-"));
}

TEST(Regex, FindsRunsOfAMegabyte) {
  const std::string run(1 << 20, ' ');
  EXPECT_THAT(matches("\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+", run), ElementsAre(run));
  // One place to return to for each repetition: more than the stack that machine code gets by default.
  const std::string pairs = [] {
    std::string text;
    for (int i = 0; i < 1 << 18; ++i) text += "ab";
    return text;
  }();
  EXPECT_THAT(matches("(?:a|b|ab)+", pairs), ElementsAre(pairs));
}

TEST(Regex, RefusesWhatMeansSomethingElseInPcre) {
  for (const std::string_view pattern : {"\\p{N}{1,3}+", "[a&&b]", "[[a]b]", "[\\W]", "\\K", "\\bword",
                                         "(?<name>a)", "(?m:.)", "\\pL", "\\x80", "[]a]", "\\1", "\\"}) {
    SCOPED_TRACE(pattern);
    expect_error(ErrorCode::kUnsupported, {"file.json: regular expression: ", "offset"},
                 [&] { Regex(pattern, "file.json"); });
  }
}

TEST(Regex, RefusesBrokenExpressions) {
  for (const std::string_view pattern : {"(a", "a)", "*", "\\p{NoSuchScript}", "[a"}) {
    SCOPED_TRACE(pattern);
    expect_error(ErrorCode::kUnsupported, {"file.json: regular expression: "},
                 [&] { Regex(pattern, "file.json"); });
  }
}

}  // namespace
}  // namespace sluice
