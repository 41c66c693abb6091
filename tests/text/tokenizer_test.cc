// Whole tokenizers: text to ids and back through all stages.
#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "base/expect_error.h"
#include "base/file.h"
#include "text/normalizer.h"
#include "text/random_text.h"
#include "text/small_tokenizer.h"
#include "text/utf8.h"

namespace sluice {
namespace {

using testing::added_token;
using testing::byte_fallback_tokenizer;
using ::testing::ElementsAre;
using testing::expect_error;
using testing::in_alphabet;
using ::testing::IsEmpty;
using testing::SmallTokenizer;
using testing::word_split;

constexpr TokenId kFirstAdded = 1000;

// Splits words, has a few merges, normalises to NFC, and knows some added tokens.
SmallTokenizer chat_tokenizer() {
  SmallTokenizer small;
  small.normalizer = R"({"type": "NFC"})";
  small.pre_tokenizer = word_split();
  for (const std::string_view merge : {"h e", "l l", "he ll", "hell o", "\r \n", "\xC3 \xA9"}) {
    const size_t space = merge.find(' ');
    small.merges.emplace_back(in_alphabet(merge.substr(0, space)), in_alphabet(merge.substr(space + 1)));
  }
  const auto special = R"("special": true)";
  small.added_tokens = '[' + added_token(kFirstAdded, "<|start|>", special) + ',' +
                       added_token(kFirstAdded + 1, "<|end|>", special) + ',' +
                       added_token(kFirstAdded + 2, "<tool>") + ',' +
                       added_token(kFirstAdded + 3, "<tool>:\u00E9", R"("normalized": true)") + ']';
  return small;
}

std::vector<std::string> tokens_of(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::string> tokens;
  for (const TokenId id : tokenizer.encode(text)) tokens.push_back(tokenizer.bytes_of(id));
  return tokens;
}

TEST(Tokenizer, EncodesNothingToNothing) {
  const Tokenizer tokenizer = chat_tokenizer().build();
  EXPECT_THAT(tokenizer.encode(""), IsEmpty());
  EXPECT_EQ(tokenizer.decode({}), "");
}

// What threads share, the caches of short pieces, is what ThreadSanitizer looks at here.
TEST(Tokenizer, EncodesOnSeveralThreadsAsOnOne) {
  const Tokenizer tokenizer = chat_tokenizer().build();
  std::vector<std::string> texts;
  for (int i = 0; i < 40; ++i)
    texts.push_back("hello hell \r\n " + std::to_string(i) + "<|start|> hello" + std::string(i, 'l'));
  std::vector<std::vector<TokenId>> want;
  for (const std::string& text : texts) want.push_back(tokenizer.encode(text));
  const Tokenizer fresh = chat_tokenizer().build();  // nothing remembered yet
  std::vector<std::vector<std::vector<TokenId>>> got(4);
  std::vector<std::thread> threads;
  for (auto& mine : got) {
    threads.emplace_back([&] {
      for (const std::string& text : texts) mine.push_back(fresh.encode(text));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& mine : got) EXPECT_EQ(mine, want);
}

TEST(Tokenizer, RecognisesSpecialTokensAloneAndBesideText) {
  const Tokenizer tokenizer = chat_tokenizer().build();
  EXPECT_THAT(tokenizer.encode("<|start|>"), ElementsAre(kFirstAdded));
  EXPECT_THAT(tokens_of(tokenizer, "hello<|start|>hello<|end|>"),
              ElementsAre("hello", "<|start|>", "hello", "<|end|>"));
  EXPECT_THAT(tokens_of(tokenizer, "<|start|><|start|"),
              ElementsAre("<|start|>", "<", "|", "s", "t", "a", "r", "t", "|"));
}

TEST(Tokenizer, LeavesSpecialTokensAsTextIfAsked) {
  const Tokenizer tokenizer = chat_tokenizer().build();
  const std::vector<TokenId> ids = tokenizer.encode("<|end|><tool>", {.special_tokens = false});
  EXPECT_THAT(ids, ::testing::Not(::testing::Contains(kFirstAdded + 1)));
  EXPECT_EQ(ids.back(), kFirstAdded + 2);
  EXPECT_EQ(tokenizer.decode(ids), "<|end|><tool>");
}

TEST(Tokenizer, FindsNormalisedTokensInNormalisedText) {
  SmallTokenizer small = chat_tokenizer();
  small.added_tokens = '[' + added_token(kFirstAdded, "<\u00E9>", R"("normalized": true)") + ',' +
                       added_token(kFirstAdded + 1, "<\u00E8>", R"("normalized": false)") + ']';
  const Tokenizer tokenizer = small.build();
  EXPECT_THAT(tokenizer.encode("<e\u0301>"), ElementsAre(kFirstAdded));
  EXPECT_THAT(tokenizer.encode("<\u00E8>"), ElementsAre(kFirstAdded + 1));
  EXPECT_THAT(tokenizer.encode("<e\u0300>"), ::testing::Not(ElementsAre(kFirstAdded + 1)));
}

TEST(Tokenizer, ComposesMarksBeforeItSplits) {
  const Tokenizer tokenizer = chat_tokenizer().build();
  EXPECT_EQ(tokenizer.encode("e\u0301"), tokenizer.encode("\u00E9"));
  EXPECT_THAT(tokens_of(tokenizer, "e\u0301"), ElementsAre("\u00E9"));
}

TEST(Tokenizer, KeepsLineEndsNulBytesAndUnicodeSpaces) {
  const Tokenizer tokenizer = chat_tokenizer().build();
  EXPECT_THAT(tokens_of(tokenizer, "hello\r\nhello"), ElementsAre("hello", "\r\n", "hello"));
  for (const std::string& text :
       {std::string("a\0b\0", 4), std::string("\u00A0\u2003x\u3000\u0085"), std::string("\r\r\n")}) {
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
}

TEST(Tokenizer, EncodesInvalidBytesAsReplacementCharacters) {
  const Tokenizer tokenizer = chat_tokenizer().build();
  for (const std::string_view bytes : {"\xFFhello\xE2\x82", "\xC3", "<|start|>\x80<|end|>"}) {
    std::string repaired;
    append_repaired(repaired, bytes, true);
    EXPECT_EQ(tokenizer.encode(bytes), tokenizer.encode(repaired));
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(bytes)), repaired);
  }
}

TEST(Tokenizer, DecodesWhatItEncodedToTheNormalForm) {
  const unsigned seed = 20261129;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const Tokenizer byte_level = chat_tokenizer().build();
  const Tokenizer fallback = byte_fallback_tokenizer({"a", "b", "e", "\u2581"}).build();
  for (int round = 0; round < 3000; ++round) {
    const std::string text = testing::random_text(random, 40);
    std::string normal;
    append_nfc(normal, text);
    ASSERT_EQ(byte_level.decode(byte_level.encode(text)), normal);
    if (text.find("\u2581") == std::string::npos) {
      ASSERT_EQ(fallback.decode(fallback.encode(text)), text);
    }
  }
}

TEST(Tokenizer, EncodesSectionsBetweenTokensOnTheirOwn) {
  const unsigned seed = 20261129;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const Tokenizer tokenizer = chat_tokenizer().build();
  for (int round = 0; round < 500; ++round) {
    const std::string left = testing::random_text(random, 20), right = testing::random_text(random, 20);
    std::vector<TokenId> expected = tokenizer.encode(left);
    expected.push_back(kFirstAdded);
    const std::vector<TokenId> tail = tokenizer.encode(right);
    expected.insert(expected.end(), tail.begin(), tail.end());
    ASSERT_EQ(tokenizer.encode(left + "<|start|>" + right), expected);
  }
}

TEST(Tokenizer, EncodesAMegabyteOfAnything) {
  const Tokenizer tokenizer = chat_tokenizer().build();
  for (const std::string_view unit :
       {" ", "a", "\n", "A", "1", "\u4E2D", "\u0301", "!", "\r\n", "<|start|>", "<|start"}) {
    std::string text;
    while (text.size() < 1 << 20) text += unit;
    std::string normal;
    append_nfc(normal, text);
    EXPECT_TRUE(tokenizer.decode(tokenizer.encode(text)) == normal) << unit;
  }
}

TEST(Tokenizer, KnowsItsTokens) {
  const Tokenizer tokenizer = chat_tokenizer().build();
  EXPECT_EQ(tokenizer.id_of("<|end|>"), kFirstAdded + 1);
  EXPECT_EQ(tokenizer.id_of("hello"), tokenizer.encode("hello")[0]);
  EXPECT_EQ(tokenizer.id_of("\u0120"), 0x20);  // as the file writes it
  EXPECT_EQ(tokenizer.id_of(" "), std::nullopt);
  EXPECT_EQ(tokenizer.id_of("\xFF"), std::nullopt);
  EXPECT_TRUE(tokenizer.is_special(kFirstAdded));
  EXPECT_FALSE(tokenizer.is_special(kFirstAdded + 2));
  EXPECT_FALSE(tokenizer.is_special(-1));
  EXPECT_FALSE(tokenizer.is_special(1 << 30));
  EXPECT_EQ(tokenizer.vocab_size(), kFirstAdded + 4);
  EXPECT_EQ(tokenizer.bytes_of(0xE2), "\xE2");
}

TEST(Tokenizer, SkipsSpecialTokensOnlyIfAsked) {
  const Tokenizer tokenizer = chat_tokenizer().build();
  const std::vector<TokenId> ids = tokenizer.encode("<|start|>hello<tool><|end|>");
  EXPECT_EQ(tokenizer.decode(ids), "<|start|>hello<tool><|end|>");
  EXPECT_EQ(tokenizer.decode(ids, true), "hello<tool>");
}

TEST(Tokenizer, RefusesIdsOutsideTheVocabulary) {
  const Tokenizer tokenizer = chat_tokenizer().build();
  for (const TokenId id : {-1, kFirstAdded + 4, INT32_MAX}) {
    const auto message = "small.json: no token has the id " + std::to_string(id);
    expect_error(ErrorCode::kInvalidArgument, {message},
                 [&] { tokenizer.decode(std::vector<TokenId>{id}, true); });
    expect_error(ErrorCode::kInvalidArgument, {message}, [&] { tokenizer.bytes_of(id); });
  }
}

TEST(Tokenizer, AnIdThatNoTokenHasDecodesToNothing) {
  const Tokenizer tokenizer = chat_tokenizer().build();
  const TokenId hole = kFirstAdded - 1;
  EXPECT_EQ(tokenizer.decode(std::vector<TokenId>{'a', hole, 'b'}), "ab");
  StreamDecoder decoder(tokenizer);
  EXPECT_EQ(decoder.push('a') + decoder.push(hole) + decoder.push('b') + decoder.finish(), "ab");
  expect_error(ErrorCode::kInvalidArgument, {"no token has the id"}, [&] { tokenizer.bytes_of(hole); });
}

TEST(Tokenizer, DropsTheSpaceThatItPutInFront) {
  SmallTokenizer small = byte_fallback_tokenizer({"a", "b", "\u2581"});
  small.normalizer = R"({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
      {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]})";
  small.decoder =
      R"({"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
      {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})";
  const Tokenizer tokenizer = small.build();
  EXPECT_THAT(tokens_of(tokenizer, "a b"), ElementsAre(" ", "a", " ", "b"));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("a b")), "a b");
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("  a")), "  a");

  small.normalizer = "null";
  small.pre_tokenizer = R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"})";
  small.decoder = R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"})";
  const Tokenizer metaspace = small.build();
  EXPECT_THAT(tokens_of(metaspace, "a b"), ElementsAre(" ", "a", " ", "b"));
  EXPECT_EQ(metaspace.decode(metaspace.encode("a b")), "a b");
}

TEST(Tokenizer, LoadsAFileAndNamesItInErrors) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("tokenizer_test." + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::filesystem::path file = folder / "tokenizer.json";
  expect_error(ErrorCode::kNotFound, {file.string()}, [&] { Tokenizer::load(file); });
  write_file_atomically(file, chat_tokenizer().json());
  EXPECT_EQ(Tokenizer::load(file).encode("hello"), chat_tokenizer().build().encode("hello"));
  write_file_atomically(file, "{");
  expect_error(ErrorCode::kBadFile, {file.string() + ": is no JSON"}, [&] { Tokenizer::load(file); });
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace sluice
