// Broken and unknown tokenizer files are refused by the name of what is wrong.
#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "text/small_tokenizer.h"
#include "text/tokenizer_spec.h"

namespace sluice {
namespace {

using testing::added_token;
using testing::byte_fallback_tokenizer;
using testing::expect_error;
using testing::SmallTokenizer;

void expect_refused(ErrorCode code, const SmallTokenizer& small, const std::string& part) {
  SCOPED_TRACE(part);
  expect_error(code, {"small.json: ", part}, [&] { small.build(); });
}

TEST(TokenizerJson, NamesStagesThatItDoesNotKnow) {
  SmallTokenizer small;
  small.normalizer = R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]})";
  expect_refused(ErrorCode::kUnsupported, small, "normalizer.normalizers[1]: the normalizer \"Lowercase\"");
  small = {};
  small.pre_tokenizer = R"({"type": "BertPreTokenizer"})";
  expect_refused(ErrorCode::kUnsupported, small, "pre_tokenizer: the pre-tokenizer \"BertPreTokenizer\"");
  small = {};
  small.decoder = R"({"type": "WordPiece"})";
  expect_refused(ErrorCode::kUnsupported, small, "decoder: the decoder \"WordPiece\"");
  small = {};
  small.model_options = R"("continuing_subword_prefix": "##")";
  expect_refused(ErrorCode::kUnsupported, small, "model: \"continuing_subword_prefix\"");
  small.model_options = R"("dropout": 0.1)";
  expect_refused(ErrorCode::kUnsupported, small, "model: \"dropout\"");
  expect_error(ErrorCode::kUnsupported, {"x.json: model: the model \"Unigram\""},
               [] { parse_tokenizer_spec(R"({"model": {"type": "Unigram"}})", "x.json"); });
}

TEST(TokenizerJson, NamesExpressionsThatItCannotRun) {
  SmallTokenizer small;
  small.pre_tokenizer = testing::split_by("[a&&b]");
  expect_refused(ErrorCode::kUnsupported, small,
                 "pre_tokenizer: regular expression: an intersection of classes");
  small.pre_tokenizer = testing::split_by("(");
  expect_refused(ErrorCode::kUnsupported, small, "pre_tokenizer: regular expression: ");
}

TEST(TokenizerJson, RefusesStagesThatDoNotFitTogether) {
  SmallTokenizer small;
  small.decoder = R"({"type": "Fuse"})";
  expect_refused(ErrorCode::kUnsupported, small, "ByteLevel in only one of pre_tokenizer and decoder");
  small = {};
  small.pre_tokenizer =
      R"({"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}, {"type": "Digits"}]})";
  expect_refused(ErrorCode::kUnsupported, small,
                 "pre_tokenizer.pretokenizers[1]: the pre-tokenizer \"Digits\"");
  small = byte_fallback_tokenizer({"a"});
  small.decoder = R"({"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "ByteFallback"}]})";
  expect_refused(ErrorCode::kUnsupported, small,
                 "decoder.decoders[1]: the decoder \"ByteFallback\" at this place");
}

TEST(TokenizerJson, NamesMergesOfUnknownTokens) {
  SmallTokenizer small = byte_fallback_tokenizer({"a", "b"});
  const std::string json = small.json();
  const auto with_merges = [&](const std::string& merges) {
    std::string text = json;
    return text.replace(text.rfind("\"merges\": []"), 12, "\"merges\": " + merges);
  };
  const auto refused = [&](const std::string& merges, const std::string& part) {
    expect_error(ErrorCode::kBadFile, {"x.json: model.merges", part},
                 [&] { Tokenizer::parse(with_merges(merges), "x.json"); });
  };
  refused(R"(["a b"])", "[0]: \"ab\" is not in the vocabulary");
  refused(R"([["a", "q"]])", "[0]: \"q\" is not in the vocabulary");
  refused(R"([["a", "b", "c"]])", "entry 0: expected two tokens");
  refused(R"(["ab"])", "entry 0: expected two tokens");
  refused(R"([7])", "entry 0: expected two tokens");
}

TEST(TokenizerJson, NamesFieldsThatAreMissingOrWrong) {
  const auto refused = [](const std::string& json, const std::string& part) {
    expect_error(ErrorCode::kBadFile, {"x.json: " + part}, [&] { Tokenizer::parse(json, "x.json"); });
  };
  refused("", "is no JSON");
  refused("[]", "the top level: expected an object");
  refused("{}", "the top level: has no field \"model\"");
  refused(R"({"model": {"vocab": []}})", "model.vocab: expected an object");
  refused(R"({"model": {"vocab": {"a": -1}, "merges": []}})",
          "model.vocab: token \"a\": expected an id from 0");
  refused(R"({"model": {"vocab": {"a": 99999999999}, "merges": []}})",
          "model.vocab: token \"a\": expected an id");
  refused(R"({"model": {"vocab": {"a": 0}}})", "model: has no field \"merges\"");
  refused(R"({"added_tokens": [{"id": 1}], "model": {}})", "added_tokens[0]: has no field \"content\"");
  refused(R"({"added_tokens": [{"id": 1, "content": "x", "special": 1}]})",
          "added_tokens[0].special: expected true");
  refused(R"({"normalizer": {"type": "Replace", "pattern": {}, "content": ""}})",
          "normalizer.pattern: expected");
}

TEST(TokenizerJson, RefusesTokensThatShareAnId) {
  SmallTokenizer small;
  small.added_tokens = '[' + added_token(65, "<x>") + ',' + added_token(65, "<y>") + ']';
  expect_refused(ErrorCode::kBadFile, small, "added_tokens: \"<y>\" or its id 65 is taken");
  small.added_tokens = '[' + added_token(300, "A") + ']';
  expect_refused(ErrorCode::kBadFile, small, "added_tokens: \"A\" or its id 300 is taken");
  expect_error(ErrorCode::kBadFile, {"model.vocab: token \"b\" or its id 0 is taken"}, [] {
    Tokenizer::parse(R"({"decoder": {"type": "Fuse"}, "model": {"vocab": {"a": 0, "b": 0}, "merges": []}})",
                     "x");
  });
}

TEST(TokenizerJson, RefusesAnUnknownTokenThatIsNone) {
  SmallTokenizer small = byte_fallback_tokenizer({"a"});
  small.model_options = R"("unk_token": "<unk>")";
  expect_refused(ErrorCode::kBadFile, small, "model.unk_token: \"<unk>\" is not in the vocabulary");
}

}  // namespace
}  // namespace sluice
