// sluice run, tokenize and render with the demo model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "apps/program.h"
#include "base/file.h"
#include "base/temporary_folder.h"

namespace sluice::testing {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

const Arguments kRun = {"run", "--model", demo_model(), "--temperature", "0", "--max-tokens", "12"};

Arguments with(Arguments arguments, const Arguments& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

Json run_json(const Arguments& more, const std::string& input = "") {
  const Outcome outcome = run_program(with(kRun, with({"--json"}, more)), input);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  return Json::parse(outcome.out);
}

Json tokenized(const std::string& text) {
  const Outcome outcome = run_program({"tokenize", "--tokenizer", demo_model()}, Json({text}).dump());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return Json::parse(outcome.out).at(0);
}

TEST(Run, JsonHasTheFieldsThatScriptsRead) {
  const Json json = run_json({"--prompt", "A violin is", "--ignore-end"});
  EXPECT_TRUE(json.at("text").is_string());
  EXPECT_EQ(json.at("prompt_ids"), tokenized("A violin is"));
  EXPECT_EQ(json.at("ids").size(), 12u);
  for (const Json& id : json.at("ids")) EXPECT_TRUE(id.is_number_integer());
  EXPECT_EQ(json.at("finish_reason"), "length");
  for (const char* name : {"load_ms", "ttft_ms", "prefill_tps", "decode_tps"}) {
    EXPECT_TRUE(json.at("timings").at(name).is_number()) << name;
    EXPECT_GT(json.at("timings").at(name), 0) << name;
  }
  EXPECT_FALSE(json.contains("logprobs"));
}

TEST(Run, LogprobsNameTheChosenTokenAndTheLikeliest) {
  const Json json = run_json({"--prompt", "A violin is", "--logprobs", "3"});
  ASSERT_EQ(json.at("logprobs").size(), json.at("ids").size());
  for (size_t i = 0; i < json["ids"].size(); ++i) {
    const Json& entry = json["logprobs"][i];
    EXPECT_EQ(entry.at("id"), json["ids"][i]);
    EXPECT_LE(entry.at("logprob"), 0.0);
    EXPECT_EQ(entry.at("top_logprobs").size(), 3u);
    EXPECT_EQ(entry["top_logprobs"][0].at("id"), entry["id"]);  // greedy
    EXPECT_TRUE(entry["top_logprobs"][2].at("token").is_string());
  }
}

TEST(Run, PromptComesFromFlagFileOrStandardInput) {
  const TemporaryFolder folder;
  const std::string file = folder / "prompt.txt", prompt = "The word \"h\u00e9llo\"\nmeans";
  write_file_atomically(file, prompt);
  const Json expected = run_json({"--prompt", prompt});
  EXPECT_EQ(expected["prompt_ids"], tokenized(prompt));
  for (const Json& other :
       {run_json({"--prompt-file", file}), run_json({"--prompt-file", "-"}, prompt), run_json({}, prompt)}) {
    EXPECT_EQ(other["prompt_ids"], expected["prompt_ids"]);
    EXPECT_EQ(other["ids"], expected["ids"]);
    EXPECT_EQ(other["text"], expected["text"]);
  }
}

TEST(Run, TextIsTheJsonsTextAndTimingsGoToStandardError) {
  const Json json = run_json({"--prompt", "A violin is"});
  const Outcome outcome = run_program(with(kRun, {"--prompt", "A violin is"}));
  EXPECT_EQ(outcome.out, json["text"].get<std::string>() + "\n");
  EXPECT_THAT(outcome.err, HasSubstr(std::to_string(json["prompt_ids"].size()) + " prompt tokens"));
  EXPECT_EQ(run_program(with(kRun, {"--prompt", "A violin is", "--quiet"})).err, "");
}

TEST(Run, ChatWrapsThePromptWithTheTemplate) {
  const Json messages = {{{"role", "system"}, {"content", "Be brief."}},
                         {{"role", "user"}, {"content", "What is red?"}}};
  const Outcome rendered =
      run_program({"render", "--model", demo_model(), "--messages", "-"}, messages.dump());
  ASSERT_EQ(rendered.exit_code, 0) << rendered.err;
  EXPECT_THAT(rendered.out, HasSubstr("<|im_start|>user\nWhat is red?<|im_end|>\n<|im_start|>assistant\n"));
  const Json json = run_json({"--chat", "--system", "Be brief.", "--prompt", "What is red?"});
  EXPECT_EQ(json["prompt_ids"], tokenized(rendered.out));
}

TEST(Run, SeedsRepeatAndExpertsAreShown) {
  const Arguments sampled = {"run", "--model",  demo_model(), "--temperature", "1",       "--max-tokens",
                             "12",  "--prompt", "The",        "--experts",     "--quiet", "--seed"};
  const Outcome first = run_program(with(sampled, {"7"}));
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(run_program(with(sampled, {"7"})).out, first.out);
  EXPECT_NE(run_program(with(sampled, {"8"})).out, first.out);
  EXPECT_THAT(first.err, HasSubstr("of 512 experts, 6 a token and layer"));
}

TEST(Run, PromptLongerThanThePositionsIsRefused) {
  std::string prompt;
  for (int i = 0; i < 5000; ++i) prompt += " the";
  const std::string tokens = std::to_string(tokenized(prompt).size());
  expect_refusal(with(kRun, {"--prompt-file", "-"}),
                 {"prompt is too long: " + tokens + " tokens > 4096 maximum"}, prompt);
  expect_refusal(with(kRun, {"--context", "8", "--prompt", prompt.substr(0, 80)}),
                 {"prompt is too long", "> 8 maximum"});
}

TEST(Run, BadPromptsAndFlagsAreRefused) {
  expect_refusal(with(kRun, {"--prompt", ""}), {"empty"});
  expect_refusal(with(kRun, {"--prompt-file", "absent.txt"}), {"absent.txt"});
  expect_wrong_usage(with(kRun, {"--prompt", "a", "--top-p", "1.5"}), {"--top-p"});
  expect_wrong_usage(with(kRun, {"--prompt", "a", "--logit-bias", "7"}), {"--logit-bias 7", "ID=VALUE"});
}

TEST(Render, TemplateThatRaisesGivesItsOwnMessage) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "chat_template.jinja", "{{ raise_exception('roles must alternate') }}");
  expect_refusal({"render", "--model", folder.path(), "--messages", "-"}, {"roles must alternate"},
                 R"([{"role": "user", "content": "a"}])");
}

TEST(Render, TemplateWithASyntaxErrorNamesTheLine) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "chat_template.jinja", "first line\n{% if %}");
  expect_refusal({"render", "--model", folder.path(), "--messages", "-"}, {"line 2"}, "[]");
}

}  // namespace
}  // namespace sluice::testing
