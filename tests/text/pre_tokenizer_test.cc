// Splitting text into pieces.
#include "text/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> split(const std::vector<PreTokenizerStepSpec>& steps, std::string_view text,
                               bool at_start = true) {
  Pieces pieces;
  PreTokenizer(steps, "test").split(text, at_start, pieces);
  return {pieces.views.begin(), pieces.views.end()};
}

SplitSpec digits(SplitBehavior behavior, bool invert = false) { return {{"\\d", true}, behavior, invert}; }

TEST(PreTokenizer, SplitsByEachBehavior) {
  const std::string_view text = "a12b3";
  EXPECT_THAT(split({digits(SplitBehavior::kIsolated)}, text), ElementsAre("a", "1", "2", "b", "3"));
  EXPECT_THAT(split({digits(SplitBehavior::kRemoved)}, text), ElementsAre("a", "b"));
  EXPECT_THAT(split({digits(SplitBehavior::kContiguous)}, text), ElementsAre("a", "12", "b", "3"));
  EXPECT_THAT(split({digits(SplitBehavior::kMergedWithPrevious)}, text), ElementsAre("a1", "2", "b3"));
  EXPECT_THAT(split({digits(SplitBehavior::kMergedWithNext)}, text), ElementsAre("a", "1", "2b", "3"));
}

TEST(PreTokenizer, TakesWhatDoesNotMatchIfInverted) {
  EXPECT_THAT(split({digits(SplitBehavior::kRemoved, true)}, "a12b3"), ElementsAre("1", "2", "3"));
  EXPECT_THAT(split({digits(SplitBehavior::kMergedWithNext, true)}, "a12b3"), ElementsAre("a1", "2", "b3"));
}

TEST(PreTokenizer, SplitsAtEmptyMatches) {
  EXPECT_THAT(split({SplitSpec{{"(?=[A-Z])", true}, SplitBehavior::kIsolated, false}}, "OneTwo\u00E9Three"),
              ElementsAre("One", "Two\u00E9", "Three"));
}

TEST(PreTokenizer, SplitsByALiteralText) {
  const SplitSpec spaces{{" ", false}, SplitBehavior::kMergedWithPrevious, false};
  EXPECT_THAT(split({spaces}, "a b  c "), ElementsAre("a ", "b ", " ", "c "));
}

TEST(PreTokenizer, GivesLaterStepsThePiecesOfEarlierOnes) {
  const SplitSpec numbers{{"\\p{N}{1,3}", true}, SplitBehavior::kIsolated, false};
  const SplitSpec words{{"\\s+(?!\\S)|\\S+|\\s", true}, SplitBehavior::kIsolated, false};
  EXPECT_THAT(split({numbers, words}, "ab  12345"), ElementsAre("ab", "  ", "123", "45"));
}

TEST(PreTokenizer, PutsASpaceBeforePiecesThatHaveNone) {
  EXPECT_THAT(split({digits(SplitBehavior::kIsolated), SpacePrefixSpec{}}, "a1 b"),
              ElementsAre(" a", " 1", " b"));
}

TEST(PreTokenizer, WritesSpacesAsAnotherCharacter) {
  const SplitSpec at_marks{{"\u2581", false}, SplitBehavior::kMergedWithNext, false};
  const auto metaspace = [](PrependScheme scheme) { return MetaspaceSpec{"\u2581", scheme}; };
  EXPECT_THAT(split({metaspace(PrependScheme::kAlways), at_marks}, "a b", false),
              ElementsAre("\u2581a", "\u2581b"));
  EXPECT_THAT(split({metaspace(PrependScheme::kAlways), at_marks}, " a", false), ElementsAre("\u2581a"));
  EXPECT_THAT(split({metaspace(PrependScheme::kNever), at_marks}, "a b"), ElementsAre("a", "\u2581b"));
  EXPECT_THAT(split({metaspace(PrependScheme::kFirst)}, "a b", true), ElementsAre("\u2581a\u2581b"));
  EXPECT_THAT(split({metaspace(PrependScheme::kFirst)}, "a b", false), ElementsAre("a\u2581b"));
}

TEST(PreTokenizer, GivesNoPieceForNoText) {
  EXPECT_THAT(split({}, ""), ElementsAre());
  EXPECT_THAT(split({MetaspaceSpec{"\u2581", PrependScheme::kAlways}}, ""), ElementsAre());
  EXPECT_THAT(split({}, "ab"), ElementsAre("ab"));
}

}  // namespace
}  // namespace sluice
