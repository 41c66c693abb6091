// Conversations as JSON.
#include "apps/conversation.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "text/json_input.h"

namespace sluice::apps {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostBytes = size_t{64} << 20;  // what a chat template may write, too

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& what) {
  throw Error(ErrorCode::kBadFile, file.string() + ": " + what);
}

std::string text_field(const Json& message, const char* field, const std::filesystem::path& file,
                       const std::string& where) {
  if (!message.contains(field)) refuse(file, where + ": \"" + field + "\" is missing");
  if (!message[field].is_string()) {
    refuse(file, where + "." + field + ": expected a string, found " + message[field].type_name());
  }
  return message[field].get<std::string>();
}

Message read_message(const Json& message, size_t index, const std::filesystem::path& file) {
  const std::string where = "messages[" + std::to_string(index) + "]";
  if (!message.is_object()) refuse(file, where + ": expected an object, found " + message.type_name());
  for (const auto& [name, value] : message.items()) {
    if (name != "role" && name != "content") refuse(file, where + ": unknown field \"" + name + "\"");
  }
  Message read{text_field(message, "role", file, where), text_field(message, "content", file, where)};
  if (read.role != "system" && read.role != "user" && read.role != "assistant") {
    refuse(file, where + ".role: expected system, user or assistant, found \"" + read.role + "\"");
  }
  if (read.role == "system" && index > 0) refuse(file, where + ": the system message must be the first");
  return read;
}

}  // namespace

void set_system(Conversation& conversation, const std::string& text) {
  const bool has_system = !conversation.empty() && conversation[0].role == "system";
  if (has_system) conversation.erase(conversation.begin());
  if (!text.empty()) conversation.insert(conversation.begin(), {"system", text});
}

void save(const Conversation& conversation, const std::filesystem::path& file) {
  Json messages = Json::array();
  for (const Message& message : conversation) {
    messages.push_back({{"role", message.role}, {"content", message.content}});
  }
  const Json document = {{"messages", std::move(messages)}};
  // Arguments of the command line may be no UTF-8: the replacement keeps the document valid.
  write_file_atomically(file, document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n", 0600);
}

Conversation load_conversation(const std::filesystem::path& file) {
  return parse_conversation(read_file_or_pipe(file, kMostBytes), file);
}

Conversation parse_conversation(std::string_view text, const std::filesystem::path& file) {
  const Json document = parse_json(text, file.string(), ErrorCode::kBadFile);
  if (!document.is_object() || !document.contains("messages") || !document["messages"].is_array()) {
    refuse(file, "expected an object with an array \"messages\"");
  }
  Conversation conversation;
  for (const Json& message : document["messages"]) {
    conversation.push_back(read_message(message, conversation.size(), file));
  }
  return conversation;
}

}  // namespace sluice::apps
