// Renderings of published chat templates, equal to those of the reference interpreter.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "text/chat_template.h"
#include "text/chat_template_inputs.h"

namespace sluice {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

const fs::path kShared = SLUICE_SHARED_DIR;

Json read_golden(const char* name) { return Json::parse(read_text_file(kShared / "goldens" / name)); }

std::vector<std::string> split(const std::string& text, char separator, size_t parts) {
  std::vector<std::string> pieces;
  size_t begin = 0;
  while (pieces.size() + 1 < parts) {
    const size_t end = text.find(separator, begin);
    if (end == std::string::npos) break;
    pieces.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  pieces.push_back(text.substr(begin));
  return pieces;
}

// The golden key "messages|tools=True|gen=True|{...}" as inputs.
ChatTemplateInputs inputs_of(const Json& golden, const std::string& key) {
  const std::vector<std::string> parts = split(key, '|', 4);
  ChatTemplateInputs inputs;
  inputs.messages = golden.at("messages").at(parts.at(0));
  if (parts.at(1) == "tools=True") inputs.tools = golden.at("tools");
  inputs.add_generation_prompt = parts.at(2) == "gen=True";
  if (parts.size() > 3) inputs.variables = Json::parse(parts[3]);
  return inputs;
}

// What a reference's error must be here: the words of raise_exception, or a run-time error of the template.
void expect_error(const ChatTemplate& chat_template, const ChatTemplateInputs& inputs,
                  const std::string& reference) {
  try {
    chat_template.render(inputs);
    FAIL() << "rendered, but the reference raises " << reference;
  } catch (const Error& error) {
    const std::string raised = "TemplateError: ";
    const bool runtime = reference.starts_with("TypeError: ") || reference.starts_with("SecurityError: ");
    EXPECT_EQ(error.code(), runtime ? ErrorCode::kBadFile : ErrorCode::kInvalidArgument) << error.what();
    if (runtime) {
      EXPECT_TRUE(std::string(error.what()).ends_with(": " + reference)) << error.what();
    } else {
      EXPECT_EQ(error.what(), reference.starts_with(raised) ? reference.substr(raised.size()) : reference);
    }
  }
}

size_t expect_renderings(const ChatTemplate& chat_template, const Json& golden, const Json& renderings) {
  size_t compared = 0;
  for (const auto& [key, expected] : renderings.items()) {
    SCOPED_TRACE(key);
    const ChatTemplateInputs inputs = inputs_of(golden, key);
    if (expected.is_string()) {
      EXPECT_EQ(chat_template.render(inputs), expected.get<std::string>());
    } else {
      expect_error(chat_template, inputs, expected.at("error").get<std::string>());
    }
    ++compared;
  }
  return compared;
}

class Clock {
 public:
  explicit Clock(const std::string& time) { ::setenv("SLUICE_CLOCK", time.c_str(), 1); }
  ~Clock() { ::unsetenv("SLUICE_CLOCK"); }
};

TEST(SharedTemplates, RenderAsTheReferenceDoes) {
  const Json golden = read_golden("templates-golden.json");
  const Clock clock(golden.at("clock").get<std::string>());
  size_t compared = 0;
  for (const auto& [name, renderings] : golden.at("templates").items()) {
    SCOPED_TRACE(name);
    const std::string source = read_text_file(kShared / "templates" / (name + ".jinja"));
    compared += expect_renderings(ChatTemplate::parse(source, "<BOS>", "<EOS>"), golden, renderings);
  }
  EXPECT_GE(compared, 500u);
}

TEST(SharedTemplates, TokenizerConfigsRenderAsTheReferenceDoes) {
  const Json golden = read_golden("chat-golden.json");
  size_t compared = 0;
  for (const auto& [name, model] : golden.at("models").items()) {
    SCOPED_TRACE(name);
    compared +=
        expect_renderings(ChatTemplate::load(kShared / "tokenizers" / name), golden, model.at("renders"));
  }
  EXPECT_GE(compared, 40u);
}

TEST(SharedTemplates, DemoModelRendersAsTheReferenceDoes) {
  const Json golden = read_golden("demo-golden.json");
  const ChatTemplate chat_template = ChatTemplate::load(kShared / "models" / "demo");
  ASSERT_FALSE(golden.at("chat").empty());
  for (const Json& entry : golden.at("chat")) {
    ChatTemplateInputs inputs;
    inputs.messages = entry.at("messages");
    EXPECT_EQ(chat_template.render(inputs), entry.at("text").get<std::string>());
  }
}

// A conversation of an agent: `count` messages, nearly all of them calls of a tool and what it gave.
ChatTemplateInputs agent_conversation(int count) {
  ChatTemplateInputs inputs;
  const std::string content(500, 'x');
  const Json call = Json::parse(R"({"id": "call00001", "type": "function",
                                    "function": {"name": "read", "arguments": {"path": "a.cc"}}})");
  inputs.messages.push_back({{"role", "user"}, {"content", content}});
  while (static_cast<int>(inputs.messages.size()) < count) {
    inputs.messages.push_back(
        {{"role", "assistant"}, {"content", content}, {"tool_calls", Json::array({call})}});
    inputs.messages.push_back({{"role", "tool"}, {"tool_call_id", "call00001"}, {"content", content}});
  }
  return inputs;
}

TEST(SharedTemplates, RenderAConversationOfTwoThousandMessages) {
  size_t rendered = 0;
  for (const auto& entry : fs::directory_iterator(kShared / "templates")) {
    SCOPED_TRACE(entry.path().filename());
    const ChatTemplate chat_template = ChatTemplate::parse(read_text_file(entry.path()), "<BOS>", "<EOS>");
    try {
      chat_template.render(agent_conversation(5));
    } catch (const Error&) {
      continue;  // not a conversation for this template
    }
    EXPECT_GT(chat_template.render(agent_conversation(2000)).size(), 500'000u);
    ++rendered;
  }
  EXPECT_GE(rendered, 9u);
}

}  // namespace
}  // namespace sluice
