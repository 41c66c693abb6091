// Normalisation: NFC against utf8proc's own, replacing and prepending.
#include "text/normalizer.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <cstdlib>

#include "text/random_text.h"
#include "text/utf8.h"

namespace sluice {
namespace {

std::string nfc(std::string_view text) {
  std::string out;
  append_nfc(out, text);
  return out;
}

std::string nfc_of_utf8proc(std::string_view text) {
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t bytes = utf8proc_map(
      reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
      &mapped, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  EXPECT_GE(bytes, 0);
  const std::string result(reinterpret_cast<const char*>(mapped), static_cast<size_t>(bytes));
  std::free(mapped);
  return result;
}

std::string normalize(const std::vector<NormalizerStepSpec>& steps, std::string_view text) {
  std::string buffer;
  return std::string(Normalizer(steps, "test").normalize(text, buffer));
}

TEST(Normalizer, ComposesMarksInCanonicalOrder) {
  EXPECT_EQ(nfc("e\u0301"), "\u00E9");
  EXPECT_EQ(nfc("x\u0301\u0323"), "x\u0323\u0301");
  EXPECT_EQ(nfc("a\u0323\u0302"), "\u1EAD");
  EXPECT_EQ(nfc("\u00E2\u0323"), "\u1EAD");        // a composed letter takes part again
  EXPECT_EQ(nfc("\u1112\u1161\u11AB"), "\uD55C");  // Hangul
  EXPECT_EQ(nfc("\u212B\u2126"), "\u00C5\u03A9");  // singletons
  EXPECT_EQ(nfc("\u0958"), "\u0915\u093C");        // excluded from composition
  EXPECT_EQ(nfc("\u0301abc\u0301"), "\u0301ab\u0107");
}

TEST(Normalizer, AgreesWithUtf8procOnEveryPairWithAMark) {
  for (char32_t code = 0; code < 0x3000; ++code) {
    std::string text;
    append_code_point(text, code);
    const std::string alone = text;
    append_code_point(text, 0x0301);
    append_code_point(text, code);
    ASSERT_EQ(nfc(alone), nfc_of_utf8proc(alone)) << std::hex << static_cast<uint32_t>(code);
    ASSERT_EQ(nfc(text), nfc_of_utf8proc(text)) << std::hex << static_cast<uint32_t>(code);
  }
}

TEST(Normalizer, KeepsTheCharacterBelowTheFirstFinalConsonant) {
  // U+11A7 is the base that final consonants are counted from, not one of them: it composes with nothing
  // (Unicode 3.12).
  EXPECT_EQ(nfc("\uAC00\u11A7"), "\uAC00\u11A7");
  EXPECT_EQ(nfc("\uAC00\u11A8"), "\uAC01");
}

TEST(Normalizer, AgreesWithUtf8procOnRandomText) {
  const unsigned seed = 20261129;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int changed = 0;
  for (int round = 0; round < 20000; ++round) {
    const std::string text = testing::random_text(random, 30);
    if (text.find("\u11A7") != std::string::npos) continue;  // which utf8proc takes for a final consonant
    const std::string expected = nfc_of_utf8proc(text);
    ASSERT_EQ(nfc(text), expected);
    ASSERT_EQ(nfc(expected), expected);
    if (is_surely_nfc(text)) {
      ASSERT_EQ(text, expected);
    }
    changed += text != expected ? 1 : 0;
  }
  EXPECT_GT(changed, 100);
}

TEST(Normalizer, KnowsPlainTextToBeNormalisedWithoutCopyingIt) {
  const Normalizer normalizer({NfcSpec{}}, "test");
  for (const std::string_view text :
       {"", "plain ASCII text\r\n", "Stra\u00DFe caf\u00E9 \u4E2D\u6587 \uD55C\uAE00"}) {
    std::string buffer;
    EXPECT_EQ(normalizer.normalize(text, buffer).data(), text.data());
  }
}

TEST(Normalizer, OrdersAMegabyteOfMarks) {
  std::string text = "a", ordered;
  for (int i = 0; i < 1 << 18; ++i) text += "\u0301\u0323";
  ordered = "\u1EA1";  // a with the first dot below
  for (int i = 1; i < 1 << 18; ++i) ordered += "\u0323";
  for (int i = 0; i < 1 << 18; ++i) ordered += "\u0301";
  EXPECT_TRUE(nfc(text) == ordered);
}

TEST(Normalizer, AppliesItsStepsInOrder) {
  const PrependSpec prepend{"\u2581"};
  const ReplaceSpec spaces{{" ", false}, "\u2581"};
  EXPECT_EQ(normalize({prepend, spaces}, "a b  c"), "\u2581a\u2581b\u2581\u2581c");
  EXPECT_EQ(normalize({spaces, prepend}, " a"), "\u2581\u2581a");
  EXPECT_EQ(normalize({prepend, spaces}, ""), "");
  EXPECT_EQ(normalize({ReplaceSpec{{"aa", false}, "a"}}, "aaaaa"), "aaa");
  EXPECT_EQ(normalize({ReplaceSpec{{"\\s+", true}, "_"}}, "a \u00A0b\n"), "a_b_");
}

}  // namespace
}  // namespace sluice
