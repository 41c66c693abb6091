// `sluice bench text`, and what the commands say about tokenizers and templates that are broken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "apps/program.h"
#include "apps/sample_text.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "text/small_tokenizer.h"

namespace sluice::testing {
namespace {

namespace fs = std::filesystem;

class TextCommands : public ::testing::Test {
 protected:
  void SetUp() override {
    SmallTokenizer tokenizer;
    tokenizer.pre_tokenizer = word_split();
    tokenizer.merges = {{"a", "b"}, {"ab", "c"}};
    json_ = tokenizer.json();
    write("tokenizer.json", json_);
  }
  void write(const std::string& name, const std::string& content) {
    write_file_atomically(folder_ / name, content);
  }
  nlohmann::json bench(Arguments arguments) const {
    arguments.insert(arguments.begin(), {"bench", "text", "--rounds", "1", "--json"});
    const Outcome outcome = run_program(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  TemporaryFolder folder_;
  std::string json_;
};

// As expect_refusal, within 100 MB. A sanitizer's own memory is no matter of the program's.
void expect_small_refusal(const Arguments& arguments, const std::vector<std::string>& parts,
                          const std::string& input = "") {
  const Outcome outcome = expect_refusal(arguments, parts, input);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
  EXPECT_LT(outcome.peak_bytes, 100'000'000);
#else
  static_cast<void>(outcome);
#endif
}

TEST_F(TextCommands, BenchCountsTheTokensOfTheFilesThatItIsGiven) {
  write("abc.txt", "abc abc x");  // "abc", " ", "abc", " ", "x": no merge takes a space
  const nlohmann::json json = bench({"--tokenizer", path("tokenizer.json"), "--file", path("abc.txt")});
  ASSERT_EQ(json.at("texts").size(), 1u);
  const nlohmann::json& text = json.at("texts")[0];
  EXPECT_EQ(text.at("name"), path("abc.txt"));
  EXPECT_EQ(text.at("bytes"), 9);
  EXPECT_EQ(text.at("tokens"), 5);
  EXPECT_GT(text.at("encode_mb_per_second"), 0);
  EXPECT_GT(json.at("load_seconds"), 0);
  EXPECT_EQ(json.at("worst_cases").size(), 10u);
  for (const nlohmann::json& worst : json.at("worst_cases")) EXPECT_GE(worst.at("bytes"), 1 << 20) << worst;
  EXPECT_FALSE(json.contains("template"));
}

TEST_F(TextCommands, SampleTextsDependOnTheirSeedAlone) {
  for (const auto& sample : {apps::sample_code, apps::sample_prose}) {
    EXPECT_EQ(sample(1, 5000), sample(1, 5000));
    EXPECT_NE(sample(1, 5000), sample(2, 5000));
    EXPECT_GE(sample(1, 5000).size(), 5000u);
    EXPECT_LT(sample(1, 5000).size(), 8000u);
  }
}

TEST_F(TextCommands, BenchRendersALongConversationIfThereIsATemplate) {
  write("chat_template.jinja", "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}");
  const nlohmann::json json = bench({"--model", folder_ / "", "--file", path("tokenizer.json")});
  EXPECT_EQ(json.at("template").at("messages"), 2000);
  EXPECT_EQ(json.at("template").at("bytes"), 2000 * 500 + 1000 * 6 + 1000 * 11);
}

TEST_F(TextCommands, BenchRefusesWhatItCannotMeasure) {
  write("empty", "");
  expect_wrong_usage({"bench", "text"}, {"--tokenizer", "--model"});
  expect_wrong_usage({"bench", "text", "--tokenizer", path("tokenizer.json"), "--model", folder_ / ""},
                     {"one of"});
  expect_refusal({"bench", "text", "--tokenizer", path("none")}, {"none: no such file"});
  expect_refusal({"bench", "text", "--tokenizer", path("tokenizer.json"), "--file", path("empty")},
                 {"is empty"});
  expect_refusal({"bench", "text", "--tokenizer", path("tokenizer.json"), "--file", path("none")}, {"none"});
}

TEST_F(TextCommands, TokenizersThatAreBrokenAreRefusedInOneLineWithLittleMemory) {
  const auto refused = [&](const std::string& content, const std::vector<std::string>& parts) {
    write("tokenizer.json", content);
    expect_small_refusal({"tokenize", "--tokenizer", folder_ / ""}, parts, "[]");
  };
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string json = json_;
    return json.replace(json.find(from), from.size(), to);
  };
  refused("", {"tokenizer.json: "});
  refused(json_.substr(0, json_.size() / 2), {"tokenizer.json: is no JSON"});
  refused(std::string(200'000, '['), {"tokenizer.json: is no JSON"});
  refused(replaced("\"BPE\"", "\"Unigram\""), {"model: the model \"Unigram\" is not supported"});
  refused(replaced("\"ByteLevel\"", "\"Whitespace\""), {"the pre-tokenizer \"Whitespace\" is not supported"});
  refused(replaced("[\"ab\",\"c\"]", "[\"ab\",\"qq\"]"),
          {"model.merges[1]: \"qq\" is not in the vocabulary"});
  refused(replaced("\"b\":98", "\"b\":97"), {"model.vocab: token \"b\" or its id 97 is taken"});
  refused(replaced("\"b\":98", "\"b\":2097152"), {"token \"b\": expected an id from 0 to 2097151"});
  refused(replaced("\"Isolated\"", "\"Isolate\""), {"the behavior \"Isolate\" is not supported"});
  refused("IQ== 0\nIg== 1\n", {"is a tiktoken vocabulary; tokenizer.json is needed"});
}

TEST_F(TextCommands, TemplatesThatLoopOrRecurseAreRefusedInOneLineWithLittleMemory) {
  write("messages.json", R"([{"role": "user", "content": "x"}])");
  const auto refused = [&](const std::string& source, const std::string& part) {
    write("chat_template.jinja", source);
    expect_small_refusal({"render", "--model", folder_ / "", "--messages", path("messages.json")},
                         {"chat template, line 1: ", part});
  };
  refused("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
          "10 million steps");
  refused("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "deeper than 100 levels");
  refused("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", "deeper than 100 levels");
  refused("{{ 'a' * 100000000 }}", "larger than 64 MB");
}

}  // namespace
}  // namespace sluice::testing
