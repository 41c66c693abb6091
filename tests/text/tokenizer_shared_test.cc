// Published tokenizers against the reference's ids and texts.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "base/file.h"
#include "text/normalizer.h"
#include "text/random_text.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace sluice {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

const fs::path kShared = SLUICE_SHARED_DIR;

// The file is unpacked once and kept beside the test programs.
fs::path unpacked(const std::string& model) {
  const fs::path packed = kShared / "tokenizers" / model / "tokenizer.json.xz";
  const fs::path folder = fs::path(SLUICE_TEST_CACHE) / model;
  const fs::path file = folder / "tokenizer.json";
  if (fs::exists(file)) return file;
  fs::create_directories(folder);
  const fs::path temporary = folder / ("unpacking." + std::to_string(::getpid()));
  const std::string command = "xz -dc '" + packed.string() + "' > '" + temporary.string() + "'";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  fs::rename(temporary, file);
  return file;
}

Tokenizer demo() { return Tokenizer::load(kShared / "models" / "demo" / "tokenizer.json"); }

std::string joined_stream(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  StreamDecoder decoder(tokenizer, false);
  std::string text;
  for (const TokenId id : ids) {
    const std::string part = decoder.push(id);
    EXPECT_TRUE(is_valid_utf8(part));
    text += part;
  }
  return text + decoder.finish();
}

TEST(DemoTokenizer, GivesTheIdsAndTextsOfTheReference) {
  const Json golden = Json::parse(read_text_file(kShared / "goldens" / "demo-golden.json"));
  const Tokenizer tokenizer = demo();
  ASSERT_GE(golden["tokenize"].size(), 20u);
  for (const Json& entry : golden["tokenize"]) {
    const auto ids = entry["ids"].get<std::vector<TokenId>>();
    EXPECT_EQ(tokenizer.encode(entry["text"].get<std::string>()), ids) << entry["text"];
    EXPECT_EQ(tokenizer.decode(ids), entry["decoded"].get<std::string>()) << entry["text"];
  }
}

TEST(DemoTokenizer, DecodesWhatItEncodedToNfc) {
  const unsigned seed = 20261129;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const Tokenizer tokenizer = demo();
  for (int round = 0; round < 5000; ++round) {
    const std::string text = testing::random_text(random, 60);
    std::string normal;
    append_nfc(normal, text);
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(text)), normal);
  }
}

class PublishedTokenizer : public ::testing::TestWithParam<std::string> {};

TEST_P(PublishedTokenizer, GivesTheIdsAndTextsOfTheReference) {
  const Json golden = Json::parse(read_text_file(kShared / "goldens" / "tokenizer-golden.json"));
  const Tokenizer tokenizer = Tokenizer::load(unpacked(GetParam()));
  const Json& texts = golden["texts"];
  const Json& model = golden["models"][GetParam()];
  ASSERT_EQ(texts.size(), 169u);
  ASSERT_EQ(model["ids"].size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto ids = model["ids"][i].get<std::vector<TokenId>>();
    const auto decoded = model["decoded"][i].get<std::string>();
    EXPECT_EQ(tokenizer.encode(texts[i].get<std::string>()), ids) << texts[i];
    EXPECT_EQ(tokenizer.decode(ids), decoded) << texts[i];
    EXPECT_EQ(joined_stream(tokenizer, ids), decoded) << texts[i];
  }
}

TEST_P(PublishedTokenizer, StreamsRandomIdsToTheTextOfAllOfThem) {
  const unsigned seed = 20261129;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const Tokenizer tokenizer = Tokenizer::load(unpacked(GetParam()));
  for (int round = 0; round < 2000; ++round) {
    std::vector<TokenId> ids;
    for (size_t i = random() % 20; i > 0; --i) {
      // Ids of single bytes are low in all of these.
      ids.push_back(static_cast<TokenId>(random() % (i % 2 == 0 ? 500u : 120000u)));
    }
    ASSERT_EQ(joined_stream(tokenizer, ids), tokenizer.decode(ids));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PublishedTokenizer,
                         ::testing::Values("qwen3", "gptoss", "deepseek_v3", "llama3_1", "gemma3"),
                         [](const auto& model) { return model.param; });

}  // namespace
}  // namespace sluice
