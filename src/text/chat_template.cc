// Finds a model's chat template and renders it with the Jinja interpreter.
#include "text/chat_template.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "text/chat_template_inputs.h"
#include "text/jinja/failure.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/json_text.h"
#include "text/jinja/parser.h"
#include "text/json_input.h"

namespace sluice {
namespace {

using Json = nlohmann::ordered_json;
using SpecialTokens = std::vector<std::pair<std::string, std::string>>;

Json read_json(const std::filesystem::path& path) {
  return parse_json(read_text_file(path), path.string(), ErrorCode::kBadFile);
}

// A token is a string, or an object that holds it as `content`. Absent tokens stay undefined in the template.
SpecialTokens special_tokens_of(const Json& config) {
  SpecialTokens tokens;
  for (const char* name :
       {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
    const auto field = config.find(name);
    if (field == config.end()) continue;
    const Json* token = &*field;
    if (token->is_object() && token->contains("content")) token = &(*token)["content"];
    if (token->is_string()) tokens.emplace_back(name, token->get<std::string>());
  }
  return tokens;
}

// The field `chat_template`: one template, or several with names, of which "default" is meant.
std::string template_of(const Json& config, const std::filesystem::path& path) {
  const auto field = config.find("chat_template");
  if (field != config.end() && field->is_string()) return field->get<std::string>();
  if (field != config.end() && field->is_array()) {
    for (const Json& entry : *field) {
      const bool named = entry.is_object() && entry.contains("name") && entry.contains("template");
      if (named && entry["name"] == "default" && entry["template"].is_string()) {
        return entry["template"].get<std::string>();
      }
    }
    throw Error(ErrorCode::kNotFound,
                path.string() + ": the list chat_template has no entry named \"default\"");
  }
  throw Error(ErrorCode::kNotFound,
              path.parent_path().string() +
                  ": no chat template: neither chat_template.jinja nor the field chat_template "
                  "in tokenizer_config.json");
}

[[noreturn]] void throw_error(const jinja::Failure& failure, int line) {
  const std::string place = "line " + std::to_string(line) + ": ";
  switch (failure.cause) {
    case jinja::Failure::Cause::kRaised:
      throw Error(ErrorCode::kInvalidArgument, failure.message);
    case jinja::Failure::Cause::kLimit:
      throw Error(ErrorCode::kUnsupported, "chat template, " + place + failure.message);
    case jinja::Failure::Cause::kRuntime:
      break;
  }
  throw Error(ErrorCode::kBadFile, "chat template, " + place + failure.message);
}

}  // namespace

struct ChatTemplate::Impl {
  jinja::Template parsed;
  SpecialTokens tokens;
};

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

ChatTemplate ChatTemplate::load(const std::filesystem::path& folder) {
  const std::filesystem::path template_path = folder / "chat_template.jinja";
  const std::filesystem::path config_path = folder / "tokenizer_config.json";
  const Json config = std::filesystem::exists(config_path) ? read_json(config_path) : Json::object();
  if (!config.is_object()) throw Error(ErrorCode::kBadFile, config_path.string() + ": is no JSON object");
  const bool own_file = std::filesystem::exists(template_path);
  const std::string source = own_file ? read_text_file(template_path) : template_of(config, config_path);
  try {
    return ChatTemplate(
        std::make_unique<Impl>(Impl{jinja::parse_template(source), special_tokens_of(config)}));
  } catch (const Error& error) {
    throw Error(error.code(),
                (own_file ? template_path : config_path).string() + ": chat template, " + error.what());
  }
}

ChatTemplate ChatTemplate::parse(std::string_view source, std::string bos_token, std::string eos_token) {
  SpecialTokens tokens;
  if (!bos_token.empty()) tokens.emplace_back("bos_token", std::move(bos_token));
  if (!eos_token.empty()) tokens.emplace_back("eos_token", std::move(eos_token));
  return ChatTemplate(std::make_unique<Impl>(Impl{jinja::parse_template(source), std::move(tokens)}));
}

std::string ChatTemplate::render(const ChatTemplateInputs& inputs) const {
  jinja::Interpreter interpreter(impl_->parsed);
  interpreter.allow_messages(static_cast<int64_t>(inputs.messages.size()));
  try {
    for (const auto& [name, token] : impl_->tokens) interpreter.set_variable(name, jinja::from_json(token));
    interpreter.set_variable("documents", jinja::Value::none());  // as the reference passes it
    for (const auto& [name, value] : inputs.variables.items())
      interpreter.set_variable(name, jinja::from_json(value));
    // Last: a variable must not replace what the request itself says.
    interpreter.set_variable("messages", jinja::from_json(inputs.messages));
    interpreter.set_variable("tools", jinja::from_json(inputs.tools));
    interpreter.set_variable("add_generation_prompt", jinja::Value::boolean(inputs.add_generation_prompt));
    return interpreter.render();
  } catch (const jinja::Failure& failure) {
    throw_error(failure, interpreter.line());
  }
}

}  // namespace sluice
