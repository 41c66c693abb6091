// The messages of a chat, and their file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::apps {

struct Message {
  std::string role;     // "system", "user" or "assistant"
  std::string content;  // UTF-8
};

using Conversation = std::vector<Message>;

/// Replaces the system message, which stands first; an empty `text` removes it.
void set_system(Conversation& conversation, const std::string& text);

/// Writes {"messages": [{"role", "content"}, ...]} under a temporary name, then renames; mode 0600. Throws
/// Error kIo.
void save(const Conversation& conversation, const std::filesystem::path& file);
/// Throws Error kNotFound, kIo, or kBadFile: no JSON, a field that is missing or unknown, a role that is none
/// of the three above, a system message that is not the first.
Conversation load_conversation(const std::filesystem::path& file);
/// The same of a file's contents.
Conversation parse_conversation(std::string_view text, const std::filesystem::path& file);

}  // namespace sluice::apps
