// Streams of tokens: whole characters only, and the same text as decoding all at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "text/small_tokenizer.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace sluice {
namespace {

using testing::added_token;
using testing::byte_fallback_tokenizer;
using ::testing::ElementsAre;
using testing::SmallTokenizer;

const std::string kBad(kReplacementCharacter);

std::vector<std::string> stream(const Tokenizer& tokenizer, const std::vector<TokenId>& ids,
                                bool skip_special = false) {
  StreamDecoder decoder(tokenizer, skip_special);
  std::vector<std::string> texts;
  for (const TokenId id : ids) texts.push_back(decoder.push(id));
  texts.push_back(decoder.finish());
  return texts;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += text;
  return all;
}

SmallTokenizer byte_level_tokenizer() {
  SmallTokenizer small;
  // Tokens that cut characters in the middle.
  small.merges = {{testing::in_alphabet("\xE2"), testing::in_alphabet("\x82")},
                  {testing::in_alphabet("\xAC"), testing::in_alphabet("a")},
                  {testing::in_alphabet("\xF0"), testing::in_alphabet("\x9F")},
                  {testing::in_alphabet("\x98"), testing::in_alphabet("\x80")}};
  small.added_tokens = '[' + added_token(270, "<end>", R"("special": true)") + ']';
  return small;
}

TEST(StreamDecoder, HoldsBackPartsOfCharacters) {
  const Tokenizer tokenizer = byte_level_tokenizer().build();
  EXPECT_THAT(stream(tokenizer, {'a', 0xE2, 0x82, 0xAC, 'b'}), ElementsAre("a", "", "", "\u20AC", "b", ""));
  EXPECT_THAT(stream(tokenizer, {256, 257}), ElementsAre("", "\u20ACa", ""));
}

TEST(StreamDecoder, ReplacesBytesThatFormNoCharacter) {
  const Tokenizer tokenizer = byte_level_tokenizer().build();
  EXPECT_THAT(stream(tokenizer, {0xE2, 0x82, 'a'}), ElementsAre("", "", kBad + "a", ""));
  EXPECT_THAT(stream(tokenizer, {0xE2, 0x82}), ElementsAre("", "", kBad));
  EXPECT_THAT(stream(tokenizer, {0xFF, 'a'}), ElementsAre(kBad, "a", ""));
  EXPECT_THAT(stream(tokenizer, {0xE2, 0xE2, 0x82, 0xAC}), ElementsAre("", kBad, "", "\u20AC", ""));
}

TEST(StreamDecoder, SkipsSpecialTokensIfAsked) {
  const Tokenizer tokenizer = byte_level_tokenizer().build();
  EXPECT_THAT(stream(tokenizer, {'a', 270, 'b'}, true), ElementsAre("a", "", "b", ""));
  EXPECT_THAT(stream(tokenizer, {0xE2, 270, 0x82, 0xAC}, true), ElementsAre("", "", "", "\u20AC", ""));
  EXPECT_THAT(stream(tokenizer, {0xE2, 270, 'b'}), ElementsAre("", kBad + "<end>", "b", ""));
}

TEST(StreamDecoder, StartsAnewAfterFinish) {
  const Tokenizer tokenizer = byte_level_tokenizer().build();
  StreamDecoder decoder(tokenizer);
  EXPECT_EQ(decoder.push(0xE2), "");
  EXPECT_EQ(decoder.finish(), kBad);
  EXPECT_EQ(decoder.push('a'), "a");
  EXPECT_EQ(decoder.finish(), "");
}

TEST(StreamDecoder, EmitsARunOfByteTokensWhenItsEndIsKnown) {
  const Tokenizer tokenizer = byte_fallback_tokenizer({"a", "\u2581"}).build();
  EXPECT_THAT(stream(tokenizer, {0xE2, 0x82, 0xAC, 256}), ElementsAre("", "", "", "\u20ACa", ""));
  EXPECT_THAT(stream(tokenizer, {0xC3, 0xA9}), ElementsAre("", "", "\u00E9"));
  // One bad byte spoils the run, one U+FFFD for each byte, as the format's decoder has it.
  EXPECT_THAT(stream(tokenizer, {0xC3, 0xA9, 0xFF, 0x41, 256}),
              ElementsAre("", "", kBad + kBad + kBad, kBad, "a", ""));
  EXPECT_THAT(stream(tokenizer, {0x41, 0xE2, 256}), ElementsAre("", "", kBad + kBad + "a", ""));
}

// What decode must give, from the bytes of single tokens alone.
std::string repaired_bytes(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  std::string bytes, text;
  for (const TokenId id : ids) bytes += tokenizer.bytes_of(id);
  append_repaired(text, bytes, true);
  return text;
}

TEST(StreamDecoder, JoinsToTheTextOfAllIdsForRandomIds) {
  const unsigned seed = 20261129;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  SmallTokenizer stripping = byte_fallback_tokenizer({"a", "\u2581", "\u20AC", "\u2581\u2581"});
  stripping.decoder =
      R"({"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
      {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 3, "stop": 0}]})";
  const Tokenizer tokenizers[] = {byte_level_tokenizer().build(),
                                  byte_fallback_tokenizer({"a", "\u2581"}).build(), stripping.build()};
  for (const Tokenizer& tokenizer : tokenizers) {
    const bool byte_level = &tokenizer == tokenizers;
    const TokenId end = byte_level ? 260 : static_cast<TokenId>(tokenizer.vocab_size());
    for (int round = 0; round < 3000; ++round) {
      std::vector<TokenId> ids;
      // Mostly lead and continuation bytes, so that characters come up.
      constexpr TokenId kLikely[] = {0xE2, 0x82, 0xAC, 0xC3, 0xA9, 'a', ' ', 256, 257};
      for (size_t i = random() % 12; i > 0; --i) {
        ids.push_back(random() % 3 == 0 ? static_cast<TokenId>(random() % static_cast<unsigned>(end))
                                        : kLikely[random() % std::size(kLikely)]);
      }
      const std::vector<std::string> texts = stream(tokenizer, ids);
      for (const std::string& text : texts) ASSERT_TRUE(is_valid_utf8(text));
      ASSERT_EQ(joined(texts), tokenizer.decode(ids));
      if (byte_level) {
        ASSERT_EQ(tokenizer.decode(ids), repaired_bytes(tokenizer, ids));
      }
    }
  }
}

}  // namespace
}  // namespace sluice
