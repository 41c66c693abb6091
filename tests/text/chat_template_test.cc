// Finding a model's template, its special tokens, and the variables that templates see.
#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/expect_error.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "text/render_template.h"

namespace sluice {
namespace {

using testing::expect_error;
using testing::TemporaryFolder;

class ChatTemplateFolder : public ::testing::Test {
 protected:
  void write(const char* name, const std::string& content) {
    write_file_atomically(folder_.path() / name, content);
  }
  std::string render() const { return ChatTemplate::load(folder_.path()).render(ChatTemplateInputs()); }
  std::filesystem::path path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

TEST_F(ChatTemplateFolder, PrefersTheTemplateFileToTheField) {
  write("tokenizer_config.json", R"({"chat_template": "field", "eos_token": "<e>"})");
  EXPECT_EQ(render(), "field");
  write("chat_template.jinja", "file{{ eos_token }}");
  EXPECT_EQ(render(), "file<e>");
}

TEST_F(ChatTemplateFolder, TakesTheDefaultOfSeveralTemplates) {
  write("tokenizer_config.json", R"({"chat_template": [{"name": "tool_use", "template": "tools"},
                                                        {"name": "default", "template": "plain"}]})");
  EXPECT_EQ(render(), "plain");
  write("tokenizer_config.json", R"({"chat_template": [{"name": "tool_use", "template": "tools"}]})");
  expect_error(ErrorCode::kNotFound, {"tokenizer_config.json", "default"}, [&] { render(); });
}

TEST_F(ChatTemplateFolder, ReadsSpecialTokensAsTextOrObject) {
  write("tokenizer_config.json", R"({"bos_token": {"content": "<b>", "lstrip": false}, "eos_token": "<e>",
                                     "pad_token": null})");
  write("chat_template.jinja",
        "{{ bos_token }}{{ eos_token }}{{ pad_token is defined }}{{ unk_token is defined }}");
  EXPECT_EQ(render(), "<b><e>FalseFalse");
}

TEST_F(ChatTemplateFolder, SaysWhatIsMissingOrBroken) {
  expect_error(ErrorCode::kNotFound, {path().string(), "chat_template.jinja", "tokenizer_config.json"},
               [&] { render(); });
  write("tokenizer_config.json", "{");
  expect_error(ErrorCode::kBadFile, {"tokenizer_config.json"}, [&] { render(); });
  write("tokenizer_config.json", "[]");
  expect_error(ErrorCode::kBadFile, {"tokenizer_config.json"}, [&] { render(); });
  write("tokenizer_config.json", "{}");
  write("chat_template.jinja", "a\n{{ 1 + }}");
  expect_error(ErrorCode::kBadFile, {"chat_template.jinja", "line 2, column 8"}, [&] { render(); });
}

TEST(ChatTemplate, GivesTheTemplateItsInputs) {
  ChatTemplateInputs inputs;
  inputs.messages = nlohmann::ordered_json::parse(R"([{"role": "user", "content": "Hi"}])");
  inputs.add_generation_prompt = false;
  inputs.variables["mode"] = "fast";
  const ChatTemplate chat_template = ChatTemplate::parse(
      "{{ bos_token }}{{ messages[0].content }}|{{ tools is none }}|{{ add_generation_prompt }}|{{ mode }}|"
      "{{ documents is none }}{{ eos_token }}",
      "<b>", "<e>");
  EXPECT_EQ(chat_template.render(inputs), "<b>Hi|True|False|fast|True<e>");
  inputs.tools = nlohmann::ordered_json::parse(R"([{"b": 1, "a": 2}])");
  EXPECT_EQ(ChatTemplate::parse("{{ tools | tojson }}").render(inputs), R"([{"b": 1, "a": 2}])");
}

TEST(ChatTemplate, LetsVariablesReplaceTokensButNotTheRequest) {
  ChatTemplateInputs inputs;
  inputs.variables =
      nlohmann::ordered_json::parse(R"({"bos_token": "<x>", "messages": "forged", "tools": "forged"})");
  EXPECT_EQ(ChatTemplate::parse("{{ bos_token }}{{ messages }}{{ tools }}", "<b>").render(inputs),
            "<x>[]None");
}

TEST(ChatTemplate, LeavesAbsentTokensUndefined) {
  EXPECT_EQ(testing::render("{{ bos_token is defined }}{{ bos_token }}"), "False");
}

TEST(ChatTemplate, RendersTheSameTwice) {
  const ChatTemplate chat_template =
      ChatTemplate::parse("{% set n = namespace(x=1) %}{% set n.x = n.x + 1 %}{{ n.x }}");
  EXPECT_EQ(chat_template.render(ChatTemplateInputs()), "2");
  EXPECT_EQ(chat_template.render(ChatTemplateInputs()), "2");
}

class ChatTemplateClock : public ::testing::Test {
 protected:
  void TearDown() override { ::unsetenv("SLUICE_CLOCK"); }
};

TEST_F(ChatTemplateClock, ShowsTheTimeOfTheEnvironment) {
  ::setenv("SLUICE_CLOCK", "2026-11-29T12:03:04", 1);
  EXPECT_EQ(testing::render("{{ strftime_now('%Y-%m-%d %H:%M:%S %A %j') }}"),
            "2026-11-29 12:03:04 Sunday 333");
  EXPECT_EQ(testing::render("{{ strftime_now('%d %b %Y%z%Z.%f 100%%') }}"), "29 Nov 2026.000000 100%");
  EXPECT_EQ(testing::render("[{{ strftime_now('') }}]"), "[]");
}

TEST_F(ChatTemplateClock, RefusesATimeThatIsNone) {
  for (const char* time :
       {"yesterday", "2026-13-01T00:00:00", "2026-11-29", "2026-11-29T12:00:00Z", "2026-02-31T12:00:00",
        "2026-02-29T12:00:00", "2026-04-31T12:00:00", "2026-00-10T12:00:00"}) {
    ::setenv("SLUICE_CLOCK", time, 1);
    expect_error(ErrorCode::kInvalidArgument, {"SLUICE_CLOCK", time},
                 [] { testing::render("{{ strftime_now('%Y') }}"); });
  }
}

}  // namespace
}  // namespace sluice
