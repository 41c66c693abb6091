// A hundred thousand brackets ended the program with a crash: values are printed, copied and freed by
// recursion.
#include "apps/broken_model.h"

namespace sluice::testing {
namespace {

std::string nested(size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

class DeepJson : public BrokenModel {
 protected:
  std::string file(const std::string& name, const std::string& content) const {
    write_file_atomically(folder_ / name, content);
    return folder_ / name;
  }
};

TEST_F(DeepJson, IsRefusedWhereverJsonIsRead) {
  const std::string limit = "nests deeper than 500 levels", deep = nested(100'000);
  const std::string array = file("array.json", deep), ids = file("inner.json", "[[1, " + deep + "]]");
  const std::string messages = file("messages.json", R"([{"role": "user", "content": )" + deep + "}]");
  const std::string chat = file("chat.json", R"({"messages": [{"role": "user", "content": )" + deep + "}]}");
  const std::string one = file("one.json", R"([{"role": "user", "content": "Hi"}])"), demo = demo_model();
  for (const std::string& name : {array, ids}) {
    expect_refusal({"eval", "--model", demo, "--ids", name}, {name, limit});
    expect_refusal({"trace", "record", "--model", demo, "--ids", name, "--out", folder_ / "out"}, {limit});
  }
  for (const std::string& items : {deep, "[[1, " + deep + "]]"}) {
    for (const char* way : {"--decode", "--tokenizer"}) {
      Arguments tokenize = {"tokenize", "--tokenizer", demo};
      if (way == std::string("--decode")) tokenize.push_back(way);
      expect_refusal(tokenize, {"standard input", limit}, items);
    }
  }
  expect_refusal({"render", "--model", demo, "--messages", messages}, {messages, limit});
  expect_refusal({"render", "--model", demo, "--messages", one, "--tools", array}, {array, limit});
  expect_wrong_usage({"render", "--model", demo, "--messages", one, "--set", "x=" + nested(60'000)},
                     {"--set x", limit});
  expect_refusal({"chat", "--model", demo, "--load", chat}, {chat, limit});
}

TEST_F(DeepJson, IsNoJsonAtAllWhereItsBracketsStandInAString) {
  const std::string text = R"(["\"[[)" + std::string(100'000, '[') + "\"]";
  const Outcome outcome = run_program({"tokenize", "--tokenizer", demo_model()}, text);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST_F(DeepJson, ItemsThatAreNoIdsAreNamedByTheirKind) {
  copy("qwen3_moe");
  for (const auto& [ids, part] : {std::pair{"[1, [2, 3]]", "expected a token id, found an array"},
                                  {"[[1], {}]", "expected an array of ids, found an object"},
                                  {"[1, 2.5]", "expected a token id, found 2.5"},
                                  {"[1, \"a\"]", "expected a token id, found \"a\""}}) {
    write_ids(ids);
    expect_refusal(eval(), {part});
  }
}

}  // namespace
}  // namespace sluice::testing
