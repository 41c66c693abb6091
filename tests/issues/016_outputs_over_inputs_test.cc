// An output that was named like an input, another output or a file of the model replaced it, with exit code
// 0.
#include <gtest/gtest.h>

#include <map>

#include "apps/broken_model.h"

namespace sluice::testing {
namespace {

namespace fs = std::filesystem;

class OutputsOverInputs : public BrokenModel {
 protected:
  void SetUp() override { copy("qwen3_moe"); }

  std::string file(const std::string& name) const { return folder_ / name; }
  Arguments evaluate(const Arguments& more) const {
    Arguments all = {"eval", "--model", model_, "--ids", ids_, "--expert-slots", "12"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::map<std::string, std::string> everything() const {
    std::map<std::string, std::string> contents;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
      if (entry.is_regular_file()) contents[entry.path()] = read_text_file(entry.path());
    }
    return contents;
  }
  void expect_untouched(const Arguments& arguments, const std::vector<std::string>& parts) const {
    const auto before = everything();
    expect_wrong_usage(arguments, parts);
    EXPECT_TRUE(everything() == before);
  }
};

TEST_F(OutputsOverInputs, AnInputIsNeverReplaced) {
  const std::string ids = ids_;
  fs::create_symlink(ids_, folder_ / "link");
  fs::create_hard_link(ids_, folder_ / "hard");
  for (const std::string& name : {ids, file("./ids.json"), file("link"), file("hard")}) {
    expect_untouched(evaluate({"--logits", name}), {"--logits " + name, "--ids"});
    expect_untouched(evaluate({"--report", name}), {"--report " + name, "--ids"});
    expect_untouched({"trace", "record", "--model", model_, "--ids", ids_, "--out", name},
                     {"--out", "--ids"});
  }
  fs::copy_file(ids_, folder_ / "a.partial");
  expect_untouched({"trace", "record", "--model", model_, "--ids", file("a.partial"), "--out", file("a")},
                   {"a.partial", "--ids"});
  expect_untouched({"trace", "record", "--model", model_, "--ids", ids_, "--expert-slots", "12",
                    "--warm-from", file("hard"), "--out", file("link")},
                   {"--out"});
}

TEST_F(OutputsOverInputs, AFileOfTheModelIsNeverReplaced) {
  for (const char* name : {"model.safetensors", "config.json"}) {
    expect_untouched(evaluate({"--logits", model_ / name}), {name, "--model"});
    expect_untouched(evaluate({"--residency", model_ / name}), {name, "--model"});
  }
  expect_untouched({"plan", "--model", model_, "--simulate", "h200", "--timeline", model_ / "config.json"},
                   {"--timeline", "--model"});
  fs::rename(model_, folder_ / "other.partial");
  expect_untouched({"convert", "--model", file("other.partial"), "--out", file("other"), "--format", "nvfp4"},
                   {"--out", "--model"});
}

TEST_F(OutputsOverInputs, TwoOutputsAreTwoFiles) {
  const std::string out = file("out");
  fs::create_symlink(out, folder_ / "link");
  for (const std::string& other : {out, file("./out"), file("link")}) {
    expect_untouched(evaluate({"--logits", out, "--report", other}), {"--report", "--logits"});
    expect_untouched(evaluate({"--residency", out, "--report", other}), {"--report", "--residency"});
    for (const char* option : {"--report", "--residency"}) {
      expect_untouched({"trace", "record", "--model", model_, "--ids", ids_, "--expert-slots", "12", "--out",
                        out, option, other},
                       {"--out", option});
    }
  }
  const Outcome outcome = run_program_into(out, evaluate({"--report", out}));
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
}

TEST_F(OutputsOverInputs, WhatIsNoConflictRuns) {
  const std::string trace = file("trace"), new_file = model_ / "residency";
  EXPECT_EQ(run_program(evaluate({"--residency", new_file, "--report", "/dev/null", "--logits", "/dev/null"}))
                .exit_code,
            0);
  EXPECT_EQ(run_program(evaluate({"--residency", new_file})).exit_code, 0) << "read, and replaced at the end";
  EXPECT_EQ(run_program_into(file("out"), evaluate({"--report", "/dev/stdout"})).exit_code, 0);
}

TEST_F(OutputsOverInputs, SaveInAChatChecksToo) {
  write_tokenizer();
  write_file_atomically(model_ / "chat_template.jinja", "{{ messages[0].content }}");
  const auto before = everything();
  const Outcome outcome =
      run_program({"chat", "--model", model_}, "/save " + (model_ / "config.json").string() + "\n");
  EXPECT_THAT(outcome.err, ::testing::HasSubstr("would replace a file of --model"));
  EXPECT_TRUE(everything() == before);
}

}  // namespace
}  // namespace sluice::testing
