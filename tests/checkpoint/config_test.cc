// Configuration fields: spellings, types, ranges, and the messages about them.
#include "checkpoint/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "base/file.h"
#include "checkpoint/make_checkpoint.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using testing::expect_error;
using ::testing::IsEmpty;

Config parse(std::string_view json) { return Config::parse(json, "config.json"); }

void expect_bad(const std::vector<std::string>& parts, const std::function<void()>& action) {
  expect_error(ErrorCode::kBadFile, parts, action);
}

TEST(Config, TakesTheFirstSpellingThatIsPresentAndNotNull) {
  const Config config = parse(R"({"num_experts": null, "num_local_experts": 8, "n_routed_experts": 9})");
  EXPECT_EQ(config.integer({"num_experts", "num_local_experts", "n_routed_experts"}, 1, 100), 8);
  EXPECT_EQ(config.integer({"n_routed_experts", "num_local_experts"}, 1, 100), 9);
  EXPECT_TRUE(config.has({"num_experts", "num_local_experts"}));
  EXPECT_FALSE(config.has({"num_experts"}));
}

TEST(Config, ListsAllSpellingsOfAMissingField) {
  const Config config = parse(R"({"num_experts": null})");
  expect_bad({"config.json: num_experts (or num_local_experts, n_routed_experts) is missing"}, [&] {
    config.integer({"num_experts", "num_local_experts", "n_routed_experts"}, 1, 9);
  });
  expect_bad({"config.json: vocab_size is missing"}, [&] { config.integer({"vocab_size"}, 1, 9); });
  expect_bad({"config.json: model_type is missing"}, [&] { config.string({"model_type"}); });
}

TEST(Config, ReadsNumbersOfBothKinds) {
  const Config config = parse(R"({"int": -3, "float": 1e-06, "big": 9223372036854775807})");
  EXPECT_EQ(config.integer({"int"}, -5, 5), -3);
  EXPECT_EQ(config.number({"int"}, -5, 5), -3.0);
  EXPECT_EQ(config.number({"float"}, 0, 1), 1e-6);
  EXPECT_EQ(config.integer({"big"}, 0, INT64_MAX), INT64_MAX);
  EXPECT_EQ(config.integer_or({"absent"}, 0, 10, 7), 7);
  EXPECT_EQ(config.number_or({"absent"}, 0, 1, 0.5), 0.5);
  EXPECT_EQ(config.integer_or({"int"}, -5, 5, 7), -3);
  EXPECT_EQ(config.number_or({"float"}, 0, 1, 0.5), 1e-6);
}

TEST(Config, NamesFieldValueAndRangeOfANumberOutside) {
  const Config config = parse(R"({"num_experts": 0, "eps": 2.5, "huge": 18446744073709551615})");
  expect_bad({"config.json: num_experts: 0", "1 to 4096"}, [&] { config.integer({"num_experts"}, 1, 4096); });
  expect_bad({"num_experts: 0"}, [&] { config.integer_or({"num_experts"}, 1, 4096, 5); });
  expect_bad({"config.json: eps: 2.5", "0 to 1"}, [&] { config.number({"eps"}, 0, 1); });
  expect_bad({"huge", "18446744073709551615"}, [&] { config.integer({"huge"}, 0, INT64_MAX); });
}

TEST(Config, NamesExpectedAndFoundTypes) {
  const Config config = parse(R"({"s": "x", "f": 1.5, "b": true, "a": [], "o": {}})");
  expect_bad({"config.json: s: expected an integer, found a string"}, [&] { config.integer({"s"}, 0, 1); });
  expect_bad({"f: expected an integer"}, [&] { config.integer({"f"}, 0, 9); });
  expect_bad({"b: expected an integer, found a boolean"}, [&] { config.integer_or({"b"}, 0, 9, 1); });
  expect_bad({"s: expected a number, found a string"}, [&] { config.number({"s"}, 0, 1); });
  expect_bad({"f: expected a boolean"}, [&] { config.boolean_or({"f"}, true); });
  expect_bad({"a: expected a string, found an array"}, [&] { config.string({"a"}); });
  expect_bad({"o: expected a string, found an object"}, [&] { config.string_or({"o"}, ""); });
  expect_bad({"s: expected an object, found a string"}, [&] { config.object({"s"}); });
  expect_bad({"s: expected a list of integers"}, [&] { config.integers({"s"}); });
  expect_bad({"o: expected a list of strings"}, [&] { config.strings({"o"}); });
}

TEST(Config, ReadsBooleansAndStrings) {
  const Config config = parse(R"({"yes": true, "no": false, "text": "grüß\n", "none": null})");
  EXPECT_TRUE(config.boolean_or({"yes"}, false));
  EXPECT_FALSE(config.boolean_or({"no"}, true));
  EXPECT_TRUE(config.boolean_or({"none"}, true));
  EXPECT_EQ(config.string({"text"}), "grüß\n");
  EXPECT_EQ(config.string_or({"none"}, "fallback"), "fallback");
}

TEST(Config, ReadsLists) {
  const Config config = parse(R"({"one": 5, "many": [1, -2], "none": null, "words": ["a", "b"],
                                  "mixed": [1, "x"], "empty": [], "broken": ["a", null]})");
  EXPECT_THAT(config.integers({"one"}), ElementsAre(5));
  EXPECT_THAT(config.integers({"many"}), ElementsAre(1, -2));
  EXPECT_THAT(config.integers({"none"}), IsEmpty());
  EXPECT_THAT(config.integers({"absent"}), IsEmpty());
  EXPECT_THAT(config.integers({"empty"}), IsEmpty());
  EXPECT_THAT(config.strings({"words"}), ElementsAre("a", "b"));
  EXPECT_THAT(config.strings({"absent"}), IsEmpty());
  expect_bad({"mixed[1]: expected an integer, found a string"}, [&] { config.integers({"mixed"}); });
  expect_bad({"broken[1]: expected a string, found null"}, [&] { config.strings({"broken"}); });
}

TEST(Config, NamesThePathInsideNestedObjects) {
  const Config config = parse(R"({"text_config": {"rope_parameters": {"rope_theta": "big"}}})");
  const Config rope = config.object({"text_config"}).object({"rope_parameters"});
  expect_bad({"config.json: text_config.rope_parameters.rope_theta: expected a number, found a string"},
             [&] { rope.number({"rope_theta"}, 0, 1); });
  expect_bad({"config.json: rope_scaling.factor is missing"}, [&] {
    config.object({"rope_scaling", "rope_parameters"}).number({"factor"}, 0, 1);
  });
}

TEST(Config, OutlivesTheOneItWasTakenFrom) {
  Config inner;
  {
    const Config outer = parse(R"({"a": {"b": 4, "c": "d"}})");
    inner = outer.object({"a"});
  }
  EXPECT_EQ(inner.integer({"b"}, 0, 9), 4);
  EXPECT_THAT(inner.keys(), ElementsAre("b", "c"));
  EXPECT_EQ(inner.file(), "config.json");
}

TEST(Config, IsEmptyByDefault) {
  const Config config;
  EXPECT_FALSE(config.has({"a"}));
  EXPECT_THAT(config.keys(), IsEmpty());
  EXPECT_EQ(config.integer_or({"a"}, 0, 1, 1), 1);
  EXPECT_FALSE(config.object({"a"}).has({"b"}));
  expect_bad({"a is missing"}, [&] { config.string({"a"}); });
}

TEST(Config, RefusesTextThatIsNoJsonObject) {
  for (const std::string_view text : {"", " ", "{", "{}}", "nul", "{\"a\":}", "{'a':1}", "{\"a\":1,}",
                                      "{\"a\":NaN}", "{\"a\":1e999}", "{\"a\":\"\x80\"}", "\xef\xbb\xbf{}"}) {
    SCOPED_TRACE(text);
    expect_bad({"config.json: not valid JSON"}, [&] { parse(text); });
  }
  expect_bad({"config.json: expected an object at the top level, found an array"}, [] { parse("[1]"); });
  expect_bad({"config.json", "found a string"}, [] { parse("\"a\""); });
}

TEST(Config, RefusesAKeyThatStandsTwiceAtAnyDepth) {
  expect_bad({"'a'", "twice"}, [] { parse(R"({"a": 1, "b": 2, "a": 1})"); });
  expect_bad({"'x'", "twice"}, [] { parse(R"({"a": [{"b": {"x": 1, "x": 2}}]})"); });
}

TEST(Config, NamesTheFileThatItReads) {
  const testing::TemporaryFolder folder;
  const auto path = folder / "config.json";
  expect_error(ErrorCode::kNotFound, {path.string()}, [&] { Config::read(path); });
  write_file_atomically(path, "{\"a\": 1");
  expect_bad({path.string()}, [&] { Config::read(path); });
}

TEST(Config, ReadsTheSameModelInBothSpellings) {
  const Config newer = Config::read(testing::golden("qwen3_moe") / "config.json");
  const Config older = Config::read(testing::golden("qwen3_moe_v4config_sharded") / "config.json");
  const auto experts = [](const Config& c) {
    return c.integer({"num_experts", "num_local_experts"}, 1, 1000);
  };
  EXPECT_EQ(experts(newer), 8);
  EXPECT_EQ(experts(older), 8);
  EXPECT_EQ(newer.object({"rope_parameters"}).number({"rope_theta"}, 1, 1e9), 10000);
  EXPECT_EQ(older.number({"rope_theta"}, 1, 1e9), 10000);
  EXPECT_EQ(newer.string({"dtype", "torch_dtype"}), older.string({"dtype", "torch_dtype"}));
}

}  // namespace
}  // namespace sluice
