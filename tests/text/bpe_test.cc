// Byte-pair encoding against the plain definition: while any pair merges, join the lowest-ranked, leftmost
// one.
#include "text/bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "text/small_tokenizer.h"

namespace sluice {
namespace {

using testing::byte_fallback_tokenizer;
using ::testing::ElementsAre;
using testing::SmallTokenizer;
using Merges = SmallTokenizer::Merges;

std::vector<std::string> tokens_of(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::string> tokens;
  for (const TokenId id : tokenizer.encode(text)) tokens.push_back(tokenizer.bytes_of(id));
  return tokens;
}

std::vector<std::string> merged_by_definition(const Merges& merges, std::string_view text) {
  std::map<std::pair<std::string, std::string>, size_t> ranks;
  for (size_t i = 0; i < merges.size(); ++i) ranks[merges[i]] = i;
  std::vector<std::string> symbols;
  for (const char c : text) symbols.emplace_back(1, c);
  for (;;) {
    size_t best = SIZE_MAX, best_rank = SIZE_MAX;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = ranks.find({symbols[i], symbols[i + 1]});
      if (found != ranks.end() && found->second < best_rank) best = i, best_rank = found->second;
    }
    if (best == SIZE_MAX) return symbols;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

Merges random_merges(std::mt19937& random, int letters, int count) {
  std::vector<std::string> tokens;
  for (int i = 0; i < letters; ++i) tokens.emplace_back(1, static_cast<char>('a' + i));
  Merges merges;
  while (static_cast<int>(merges.size()) < count) {
    const std::pair pair(tokens[random() % tokens.size()], tokens[random() % tokens.size()]);
    if (pair.first.size() + pair.second.size() > 12) continue;
    if (std::find(merges.begin(), merges.end(), pair) != merges.end()) continue;
    merges.push_back(pair);
    tokens.push_back(pair.first + pair.second);
  }
  return merges;
}

TEST(Bpe, FollowsTheDefinitionForShortAndLongPieces) {
  const unsigned seed = 20261129;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 40; ++round) {
    SmallTokenizer small;
    const int letters = 1 + static_cast<int>(random() % 4);
    small.merges = random_merges(random, letters, letters == 1 ? 4 : 30);
    small.merges_as_pairs = round % 2 == 0;
    const Tokenizer tokenizer = small.build();
    for (const size_t length : {1, 2, 7, 63, 64, 65, 300}) {
      std::string text;
      for (size_t i = 0; i < length; ++i)
        text += static_cast<char>('a' + random() % static_cast<unsigned>(letters));
      ASSERT_EQ(tokens_of(tokenizer, text), merged_by_definition(small.merges, text)) << text;
      ASSERT_EQ(tokens_of(tokenizer, text), merged_by_definition(small.merges, text)) << "again: " << text;
    }
  }
}

TEST(Bpe, KeepsATokenWholeOnlyIfItsMergesMakeItOrMergesAreIgnored) {
  SmallTokenizer small;
  // "abc" is a token that no merges reach: "b c" comes first.
  small.merges = {{"b", "c"}, {"a", "b"}, {"ab", "c"}};
  EXPECT_THAT(tokens_of(small.build(), "abc"), ElementsAre("a", "bc"));
  EXPECT_THAT(tokens_of(small.build(), "ab"), ElementsAre("ab"));
  small.model_options = R"("ignore_merges": true)";
  EXPECT_THAT(tokens_of(small.build(), "abc"), ElementsAre("abc"));
  EXPECT_THAT(tokens_of(small.build(), "abcx"), ElementsAre("a", "bc", "x"));
}

// A model of characters whose pieces are whole texts, which are cut where no merge can reach across.
TEST(Bpe, FollowsTheDefinitionForTextsThatItEncodesInParts) {
  const unsigned seed = 20261130;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 40; ++round) {
    SmallTokenizer small = byte_fallback_tokenizer({"a", "b", "c", "d", "e", "f", "g"});
    small.merges = random_merges(random, 7, 12);
    if (round % 2 == 1) small.model_options = R"("byte_fallback": true, "unk_token": "a", "fuse_unk": true)";
    const Tokenizer tokenizer = small.build();
    for (const size_t length : {1, 2, 7, 40, 300}) {
      std::string text;
      for (size_t i = 0; i < length; ++i) text += static_cast<char>('a' + random() % 7);
      ASSERT_EQ(tokens_of(tokenizer, text), merged_by_definition(small.merges, text)) << text;
    }
  }
}

TEST(Bpe, MergesTokensOfBytesAndUnknownOnes) {
  SmallTokenizer small = byte_fallback_tokenizer({"a", "<unk>"});
  small.merges = {{"<0xC3>", "<0xA9>"}, {"<unk>", "a"}};  // "<0xC3><0xA9>" and "<unk>a"
  const auto ids_of = [&](std::string_view token) { return *small.build().id_of(token); };
  EXPECT_THAT(small.build().encode("a\u00E9a"),
              ElementsAre(ids_of("a"), ids_of("<0xC3><0xA9>"), ids_of("a")));
  small.model_options = R"("unk_token": "<unk>", "fuse_unk": false)";
  EXPECT_THAT(small.build().encode("axa"), ElementsAre(ids_of("a"), ids_of("<unk>a")));
}

TEST(Bpe, GivesTheSameIdsHoweverMuchItHasEncodedBefore) {
  const unsigned seed = 20261130;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  SmallTokenizer small;
  small.merges = random_merges(random, 4, 60);
  small.pre_tokenizer = testing::word_split();
  const Tokenizer used = small.build();
  for (int round = 0; round < 60; ++round) {
    std::string text;
    // More words than are remembered, of all lengths around the longest that is.
    for (int word = 0; word < 400; ++word) {
      for (size_t i = random() % 19 + 1; i > 0; --i) text += static_cast<char>('a' + random() % 4);
      text += ' ';
    }
    const std::vector<TokenId> ids = used.encode(text);
    ASSERT_EQ(ids, small.build().encode(text));
    ASSERT_EQ(ids, used.encode(text));
  }
}

TEST(Bpe, EncodesAMegabyteOfOneLetter) {
  SmallTokenizer small;
  small.merges = {{"a", "a"}, {"aa", "aa"}, {"aaaa", "aaaa"}};
  const Tokenizer tokenizer = small.build();
  const TokenId eight = *tokenizer.id_of("aaaaaaaa");
  EXPECT_EQ(tokenizer.encode(std::string(1 << 20, 'a')), std::vector<TokenId>((1 << 20) / 8, eight));
  EXPECT_EQ(tokenizer.encode(std::string((1 << 20) + 1, 'a')).size(), (1 << 20) / 8 + 1);
}

TEST(Bpe, FallsBackToBytesForCharactersThatAreNoTokens) {
  const Tokenizer tokenizer = byte_fallback_tokenizer({"a", "\u2581"}).build();
  EXPECT_THAT(tokenizer.encode("a b\u20AC"),
              ElementsAre(*tokenizer.id_of("a"), *tokenizer.id_of("\u2581"), 'b', 0xE2, 0x82, 0xAC));
}

TEST(Bpe, UsesTheUnknownTokenOnceForARunIfItFuses) {
  SmallTokenizer small = byte_fallback_tokenizer({"a", "<unk>"});
  small.model_options = R"("unk_token": "<unk>", "fuse_unk": true)";
  EXPECT_THAT(tokens_of(small.build(), "axyaz"), ElementsAre("a", "<unk>", "a", "<unk>"));
  small.model_options = R"("unk_token": "<unk>", "fuse_unk": false)";
  EXPECT_THAT(tokens_of(small.build(), "axya"), ElementsAre("a", "<unk>", "<unk>", "a"));
}

TEST(Bpe, RefusesTextThatTheVocabularyCannotExpress) {
  SmallTokenizer small = byte_fallback_tokenizer({"a"});
  small.model_options = R"("byte_fallback": false)";
  const Tokenizer tokenizer = small.build();
  try {
    tokenizer.encode("a\u20AC");
    FAIL() << "nothing was thrown";
  } catch (const std::exception& error) {
    EXPECT_STREQ(error.what(),
                 "small.json: the vocabulary has no token for \"\u20AC\" of the text, and no unknown token");
  }
}

}  // namespace
}  // namespace sluice
