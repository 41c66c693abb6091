// `sluice render`: messages to the text that a model reads, through its chat template.
#include <nlohmann/json.hpp>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/arguments.h"
#include "apps/commands.h"
#include "apps/input_limits.h"
#include "apps/model_place.h"
#include "apps/usage_error.h"
#include "base/error.h"
#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "text/chat_template.h"
#include "text/chat_template_inputs.h"
#include "text/json_input.h"

namespace sluice::apps {
namespace {

using Json = nlohmann::ordered_json;

/// Variables that are set by options of their own.
constexpr std::pair<const char*, const char*> kOfOtherOptions[] = {
    {"messages", "--messages"},
    {"tools", "--tools"},
    {"add_generation_prompt", "--no-generation-prompt (or its absence)"}};

struct RenderOptions {
  ModelPlace model;
  std::string messages;
  std::string tools;  // empty: none
  bool no_generation_prompt = false;
  std::vector<std::string> variables;  // name=JSON
};

Json read_list(const std::string& file, const char* what) {
  const std::string place = input_name(file);
  Json list = parse_json(read_input(file, kMostInputBytes), place, ErrorCode::kInvalidArgument);
  if (!list.is_array())
    throw Error(ErrorCode::kInvalidArgument, place + ": expected a JSON array of " + what);
  return list;
}

Json read_variables(const std::vector<std::string>& definitions) {
  Json variables = Json::object();
  for (const std::string& definition : definitions) {
    const size_t equals = definition.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UsageError("--set " + definition + ": expected name=JSON");
    }
    const std::string name = definition.substr(0, equals);
    for (const auto& [taken, option] : kOfOtherOptions) {
      if (name == taken) throw UsageError("--set " + name + ": has no effect, " + option + " says it");
    }
    try {
      variables[name] =
          parse_json(definition.substr(equals + 1), "--set " + name, ErrorCode::kInvalidArgument);
    } catch (const Error& error) {
      throw UsageError(error.what());
    }
  }
  return variables;
}

void render(const RenderOptions& options) {
  if (options.messages == "-" && options.tools == "-") {
    throw UsageError("--messages and --tools can't both read standard input");
  }
  const Json variables = read_variables(options.variables);
  const ChatTemplate chat_template = ChatTemplate::load(options.model.folder());
  ChatTemplateInputs inputs;
  inputs.messages = read_list(options.messages, "messages");
  if (!options.tools.empty()) inputs.tools = read_list(options.tools, "tools");
  inputs.add_generation_prompt = !options.no_generation_prompt;
  inputs.variables = variables;
  const std::string text = chat_template.render(inputs);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) {
    throw Error(ErrorCode::kIo, "cannot write to standard output");
  }
}

}  // namespace

void add_render(Command& program) {
  auto options = std::make_shared<RenderOptions>();
  Command command = program.subcommand("render", "Render a conversation with the model's chat template");
  command.footer(
      "Prints the text exactly as the model reads it, without a newline of its own. A template that refuses\n"
      "the messages ends the command with its own words and exit code 1.\n"
      "SLUICE_CLOCK=2026-11-29T12:00:00 fixes the time that templates see.\n"
      "\n"
      "  $ echo '[{\"role\": \"user\", \"content\": \"Hi\"}]' | sluice render --model MODEL --messages -\n"
      "  $ sluice render --model MODEL --messages chat.json --tools tools.json --set enable_thinking=false");
  options->model
      .add_to(command, "chat_template.jinja, or with a tokenizer_config.json that holds the template")
      .required();
  command.option("--messages", options->messages, "JSON array of messages; - is standard input")
      .type("FILE")
      .required();
  command.option("--tools", options->tools, "JSON array of tool definitions; - is standard input")
      .type("FILE");
  command.flag("--no-generation-prompt", options->no_generation_prompt,
               "End after the last message, do not open the assistant's turn");
  command.option("--set", options->variables, "A further variable of the template; may be repeated")
      .type("NAME=JSON");
  command.action([options] { render(*options); });
}

}  // namespace sluice::apps
