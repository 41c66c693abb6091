// Broken and foreign tokenizer files: one line that says what is wrong, little memory, and no crash.
#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "text/small_tokenizer.h"
#include "text/tokenizer.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;
using testing::SmallTokenizer;
using testing::TemporaryFolder;

class BadTokenizer : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& content) {
    write_file_atomically(folder_ / name, content);
  }
  void expect_load_error(ErrorCode code, const std::vector<std::string>& parts,
                         const std::string& name = "tokenizer.json") {
    expect_error(code, parts, [&] { Tokenizer::load(folder_ / name); });
  }
  TemporaryFolder folder_;
};

// A file that loads, with every kind of field.
std::string small_json() {
  SmallTokenizer small;
  small.normalizer = R"({"type": "NFC"})";
  small.added_tokens = '[' + testing::added_token(300, "<end>", R"("special": true)") + ']';
  small.pre_tokenizer = testing::word_split();
  small.merges = {{"a", "b"}, {"ab", "c"}};
  return small.json();
}

TEST_F(BadTokenizer, IsRefusedWhereverItIsTruncated) {
  const std::string json = small_json();
  EXPECT_NO_THROW(Tokenizer::parse(json, "x.json"));
  for (size_t size = 0; size < json.size(); ++size) {
    expect_error(ErrorCode::kBadFile, {"x.json: "},
                 [&] { Tokenizer::parse(json.substr(0, size), "x.json"); });
  }
}

TEST_F(BadTokenizer, IsRefusedWithBytesAfterItsEnd) {
  expect_error(ErrorCode::kBadFile, {"x.json: is no JSON"},
               [] { Tokenizer::parse(small_json() + "}", "x.json"); });
}

TEST_F(BadTokenizer, NeverCrashesForAValueOfAnotherType) {
  const std::string json = small_json();
  size_t refused = 0;
  // Each value that begins here becomes one of another type.
  for (size_t at = json.find(": "); at != std::string::npos; at = json.find(": ", at + 2)) {
    for (const std::string value : {"null", "7", "-1", "1e300", "true", "\"x\"", "[]", "{}", "[[]]"}) {
      std::string changed = json;
      size_t end = at + 2;
      if (json[end] == '"') {
        end = json.find('"', end + 1) + 1;
      } else {
        end = json.find_first_of(",}]", end);
      }
      changed.replace(at + 2, end - at - 2, value);
      try {
        Tokenizer::parse(changed, "x.json").encode("It's a<end> abc");
      } catch (const Error& error) {
        ++refused;
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      }
    }
  }
  EXPECT_GT(refused, 100u);
}

TEST_F(BadTokenizer, IsRefusedForManyBrackets) {
  const std::string brackets(200'000, '[');
  expect_error(ErrorCode::kBadFile, {"x.json: is no JSON"}, [&] { Tokenizer::parse(brackets, "x.json"); });
  expect_error(ErrorCode::kBadFile, {"x.json: is no JSON"}, [&] {
    Tokenizer::parse(R"({"normalizer":)" + brackets + std::string(200'000, ']') + "}", "x.json");
  });
  std::string steps;
  for (int i = 0; i < 400; ++i) steps += R"({"type":"Sequence","normalizers":[)";
  expect_error(ErrorCode::kBadFile, {"x.json: "},
               [&] { Tokenizer::parse(R"({"normalizer":)" + steps + std::string(1, ']'), "x.json"); });
}

TEST_F(BadTokenizer, IsRefusedForIdsThatWouldTakeGigabytes) {
  for (const char* id : {"2097152", "16777216", "2147483647", "4294967296", "99999999999999999999", "1.5"}) {
    SCOPED_TRACE(id);
    const std::string vocabulary = std::string(R"({"model": {"vocab": {"a": )") + id + R"(}, "merges": []}})";
    expect_error(ErrorCode::kBadFile, {"x.json: "}, [&] { Tokenizer::parse(vocabulary, "x.json"); });
    const std::string added = std::string(R"({"added_tokens": [{"id": )") + id + R"(, "content": "x"}]})";
    expect_error(ErrorCode::kBadFile, {"x.json: "}, [&] { Tokenizer::parse(added, "x.json"); });
  }
}

TEST_F(BadTokenizer, GivesAnErrorForAnExpressionThatBacktracksWithoutEnd) {
  SmallTokenizer small;
  small.pre_tokenizer = testing::split_by("(a+)+$");
  const Tokenizer tokenizer = small.build();
  EXPECT_EQ(tokenizer.encode("aaaa").size(), 4u);
  expect_error(ErrorCode::kUnsupported,
               {"small.json: pre_tokenizer: regular expression: match limit exceeded"},
               [&] { tokenizer.encode(std::string(100'000, 'a') + "b"); });
  small.pre_tokenizer = testing::split_by("(?:a*)*[cd]");
  expect_error(ErrorCode::kUnsupported, {"match limit exceeded"},
               [&] { small.build().encode(std::string(100'000, 'a') + "b"); });
}

// Sixty steps that double a text would make 2^60 bytes of one.
TEST_F(BadTokenizer, ThatWouldMakeTextsGrowWithoutBoundIsRefused) {
  const auto steps = [](const std::string& step, int count) {
    std::string list;
    for (int i = 0; i < count; ++i) list += (i == 0 ? "" : ", ") + step;
    return list;
  };
  const std::string doubles = R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"})";
  SmallTokenizer small = testing::byte_fallback_tokenizer({"a"});
  small.normalizer = R"({"type": "Sequence", "normalizers": [)" + steps(doubles, 60) + "]}";
  expect_error(ErrorCode::kUnsupported,
               {"normalizer.normalizers[9]: making a text more than 1000 times as long"},
               [&] { small.build(); });
  small.normalizer = R"({"type": "Sequence", "normalizers": [)" + steps(doubles, 9) + "]}";
  EXPECT_EQ(small.build().encode("a").size(), 512u);
  small.normalizer = "null";
  small.decoder = R"({"type": "Sequence", "decoders": [)" + steps(doubles, 60) + R"(, {"type": "Fuse"}]})";
  expect_error(ErrorCode::kUnsupported, {"decoder.decoders[9]: making a text more than 1000 times as long"},
               [&] { small.build(); });
}

TEST_F(BadTokenizer, OfAnotherFormatIsNamedWithWhatToDo) {
  const std::string sentence_piece("\n\x0e\n\x05<unk>\x15\0\0\0\0\x18\x02", 16);
  write("tokenizer.model", sentence_piece);
  write("qwen.tiktoken", "IQ== 0\nIg== 1\n");
  write("model.gguf", "GGUF\x03");
  const std::string advice = "tokenizer.json is needed";
  expect_load_error(ErrorCode::kUnsupported,
                    {"tokenizer.model: is a SentencePiece model", advice, "save_pretrained"});
  expect_load_error(ErrorCode::kUnsupported, {"tokenizer.model: is a SentencePiece model", advice},
                    "tokenizer.model");
  expect_load_error(ErrorCode::kUnsupported, {"qwen.tiktoken: is a tiktoken vocabulary", advice},
                    "qwen.tiktoken");
  expect_load_error(ErrorCode::kUnsupported, {"model.gguf: is a GGUF file", advice}, "model.gguf");
  write("tokenizer.json", sentence_piece);  // renamed
  expect_load_error(ErrorCode::kUnsupported, {"tokenizer.json: is a SentencePiece model"});
  fs::remove(folder_ / "tokenizer.json");
  fs::remove(folder_ / "tokenizer.model");
  fs::remove(folder_ / "model.gguf");
  expect_load_error(ErrorCode::kUnsupported, {"qwen.tiktoken: is a tiktoken vocabulary", advice});
  fs::remove(folder_ / "qwen.tiktoken");
  write("vocab.json", "{}");
  write("merges.txt", "#version: 0.2\n");
  expect_load_error(ErrorCode::kUnsupported, {"merges.txt: is an older form of a BPE model", advice});
  fs::remove(folder_ / "merges.txt");
  expect_load_error(ErrorCode::kNotFound, {"tokenizer.json: there is no such file"});
}

TEST_F(BadTokenizer, ThatIsJsonIsNotTakenForAnotherFormat) {
  for (const std::string& json : {small_json(), "\n" + small_json(), "\n\n " + small_json()}) {
    write("tokenizer.json", json);
    EXPECT_NO_THROW(Tokenizer::load(folder_ / "tokenizer.json"));
  }
}

}  // namespace
}  // namespace sluice
