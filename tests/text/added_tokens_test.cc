// Finding added tokens in text.
#include "text/added_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

using ::testing::ElementsAre;

AddedTokenSpec token(TokenId id, std::string content) {
  AddedTokenSpec spec;
  spec.id = id;
  spec.content = std::move(content);
  return spec;
}

// "text" for text, "<id:text>" for tokens.
std::vector<std::string> split(const AddedTokens& tokens, std::string_view text, bool special = true) {
  std::vector<Section> sections;
  tokens.split(text, special, sections);
  std::vector<std::string> parts;
  size_t end = 0;
  for (const Section& section : sections) {
    EXPECT_EQ(section.begin, end);
    end = section.end;
    const std::string part(text.substr(section.begin, section.end - section.begin));
    parts.push_back(section.token == kNoToken ? part
                                              : '<' + std::to_string(section.token) + ':' + part + '>');
  }
  EXPECT_EQ(end, text.size());
  return parts;
}

TEST(AddedTokens, PrefersTheLeftmostAndThenTheLongest) {
  const AddedTokens tokens({token(1, "ab"), token(2, "abcd"), token(3, "bcde"), token(4, "c")});
  EXPECT_THAT(split(tokens, "abcde"), ElementsAre("<2:abcd>", "e"));
  EXPECT_THAT(split(tokens, "abce"), ElementsAre("<1:ab>", "<4:c>", "e"));
  EXPECT_THAT(split(tokens, "xbcde"), ElementsAre("x", "<3:bcde>"));
  EXPECT_THAT(split(tokens, "ababcd"), ElementsAre("<1:ab>", "<2:abcd>"));
  EXPECT_THAT(split(tokens, ""), ElementsAre());
}

TEST(AddedTokens, LeavesSpecialTokensAsTextIfAsked) {
  AddedTokenSpec special = token(1, "<eos>");
  special.special = true;
  const AddedTokens tokens({special, token(2, "<tool>")});
  EXPECT_THAT(split(tokens, "a<eos><tool>"), ElementsAre("a", "<1:<eos>>", "<2:<tool>>"));
  EXPECT_THAT(split(tokens, "a<eos><tool>", false), ElementsAre("a<eos>", "<2:<tool>>"));
}

TEST(AddedTokens, TakesWhiteSpaceOnTheSidesThatStrip) {
  AddedTokenSpec left = token(1, "[L]"), right = token(2, "[R]"), both = token(3, "[B]");
  left.lstrip = both.lstrip = right.rstrip = both.rstrip = true;
  const AddedTokens tokens({left, right, both});
  EXPECT_THAT(split(tokens, "a \u3000[L] b"), ElementsAre("a", "<1: \u3000[L]>", " b"));
  EXPECT_THAT(split(tokens, "a [R]\n b"), ElementsAre("a ", "<2:[R]\n >", "b"));
  EXPECT_THAT(split(tokens, " [B] [B] "), ElementsAre("<3: [B] >", "<3:[B] >"));
  EXPECT_THAT(split(tokens, "[R] [L]"), ElementsAre("<2:[R] >", "<1:[L]>"));
}

TEST(AddedTokens, FindsSingleWordsOnlyBetweenOtherCharacters) {
  AddedTokenSpec word = token(1, "cat");
  word.single_word = true;
  const AddedTokens tokens({word});
  EXPECT_THAT(split(tokens, "cat,cat"), ElementsAre("<1:cat>", ",", "<1:cat>"));
  EXPECT_THAT(split(tokens, "concat cats _cat cat\u0301"), ElementsAre("concat cats _cat cat\u0301"));
  EXPECT_THAT(split(tokens, "\u00E9cat cat"), ElementsAre("\u00E9cat ", "<1:cat>"));
}

}  // namespace
}  // namespace sluice
