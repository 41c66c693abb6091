// The hand-written scanners find what PCRE2 finds with the same expression, match by match.
#include "text/piece_scanner.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "text/random_text.h"

namespace sluice {
namespace {

// As the published files have them, unescaped.
const std::vector<std::string>& patterns() {
  static const std::vector<std::string> all = {
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
      R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
      R"(\p{N}{1,3})",
      "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
      "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
      " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"};
  return all;
}

// What a scanner finds, with Regex where it leaves the decision to it. `decided` counts its own.
bool find(PieceScanner scanner, const Regex& regex, std::string_view text, size_t from, Regex::Match& match,
          int& decided) {
  const ScanResult result = scanner(text, from, match);
  if (result == ScanResult::kUndecided) {
    EXPECT_GE(match.begin, from);
    return regex.find(text, match.begin, match);
  }
  ++decided;
  return result == ScanResult::kMatch;
}

// From every character on, not only where a match ended: a split by an earlier step starts anywhere.
void expect_agreement(const std::string& pattern, const Regex& regex, std::string_view text, int& decided) {
  const PieceScanner scanner = find_piece_scanner(pattern);
  ASSERT_NE(scanner, nullptr) << pattern;
  for (size_t from = 0; from <= text.size(); ++from) {
    if (from < text.size() && (static_cast<uint8_t>(text[from]) & 0xC0u) == 0x80) continue;
    Regex::Match expected{0, 0}, actual{0, 0};
    const bool expects = regex.find(text, from, expected);
    ASSERT_EQ(find(scanner, regex, text, from, actual, decided), expects)
        << pattern << "\nfrom " << from << " of " << ::testing::PrintToString(text);
    if (!expects) continue;
    ASSERT_EQ(std::pair(actual.begin, actual.end), std::pair(expected.begin, expected.end))
        << pattern << "\nfrom " << from << " of " << ::testing::PrintToString(text);
  }
}

// Characters that the expressions tell apart, close together.
std::string random_pieces(std::mt19937& random) {
  static const std::vector<std::string> parts = {"a",          "z",      "A",
                                                 "Z",          "b",      "s",
                                                 "'",          "'s",     "'LL",
                                                 "'re",        "'v",     "1",
                                                 "23",         " ",      "  ",
                                                 "\n",         "\r",     "\t",
                                                 "\x0b",       "/",      "!",
                                                 "-",          "_",      "\x01",
                                                 "\x1c",       "\x7f",   std::string(1, '\0'),
                                                 "\u00e9",     "\u017f", "\u0301",
                                                 "\u4e2d",     "\u3042", "\u00a0",
                                                 "\u0085",     "\u0661", "\u01c5",
                                                 "\U0001F600", "\u212a"};
  std::string text;
  const bool only_ascii = random() % 2 == 0;
  for (size_t count = random() % 14; count > 0; --count) {
    const std::string& part = parts[random() % parts.size()];
    if (!only_ascii || static_cast<uint8_t>(part[0]) < 0x80) text += part;
  }
  return text;
}

TEST(PieceScanner, FindsWhatPcreFindsInRandomText) {
  const unsigned seed = 20261130;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (const std::string& pattern : patterns()) {
    const Regex regex(pattern, "test");
    int decided = 0;
    for (int round = 0; round < 1500 && !::testing::Test::HasFatalFailure(); ++round) {
      const std::string text = round % 3 == 0 ? testing::random_text(random, 12) : random_pieces(random);
      expect_agreement(pattern, regex, text, decided);
    }
    EXPECT_GT(decided, 2000) << "hardly anything was left to the scanner of " << pattern;
  }
}

TEST(PieceScanner, FindsWhatPcreFindsInEveryShortTextOfItsCharacters) {
  const std::string characters = "aS'l1 \n/!\x01";
  for (const std::string& pattern : patterns()) {
    const Regex regex(pattern, "test");
    int decided = 0;
    std::string text(4, 'a');
    for (size_t code = 0; code < 10000 && !::testing::Test::HasFatalFailure(); ++code) {
      size_t rest = code;
      for (char& c : text) {
        c = characters[rest % 10];
        rest /= 10;
      }
      expect_agreement(pattern, regex, text, decided);
    }
  }
}

TEST(PieceScanner, DecidesAsciiByItself) {
  const std::string text = "int main(void) {\n  // It's 1234 of THEM, isn't it?\r\n\treturn x_y;\n}\n\n";
  for (const std::string& pattern : patterns()) {
    const PieceScanner scanner = find_piece_scanner(pattern);
    Regex::Match match{0, 0};
    for (size_t from = 0; from < text.size(); from = match.end) {
      const ScanResult result = scanner(text, from, match);
      ASSERT_NE(result, ScanResult::kUndecided) << pattern << " at " << from;
      if (result == ScanResult::kNone) break;
    }
  }
}

TEST(PieceScanner, TakesOnlyExpressionsThatItKnowsToTheLetter) {
  for (std::string pattern : patterns()) {
    EXPECT_NE(find_piece_scanner(pattern), nullptr) << pattern;
    EXPECT_EQ(find_piece_scanner(pattern + " "), nullptr) << pattern;
    pattern.back() = '*';
    EXPECT_EQ(find_piece_scanner(pattern), nullptr) << pattern;
  }
  EXPECT_EQ(find_piece_scanner(""), nullptr);
}

}  // namespace
}  // namespace sluice
