// The lines that a user typed in earlier conversations.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::apps {

/// A text file that grows by one line an entry, for its owner's eyes only (mode 0600, folder 0700). Each
/// entry is one write to the end, so that several conversations at once lose nothing.
class ChatHistory {
 public:
  static constexpr size_t kMostLines = 1000;

  /// $XDG_STATE_HOME/sluice/chat_history, else $HOME/.local/state/sluice/chat_history. Where that cannot be
  /// written, nothing is kept and `problem` says why. A file that has grown to twice kMostLines is cut to the
  /// latest ones.
  static ChatHistory open();

  const std::vector<std::string>& lines() const { return lines_; }  // earlier ones, oldest first
  const std::string& problem() const { return problem_; }           // empty: the history is kept
  /// `line` holds no line break. Failures are silent: a full disk must not end a conversation.
  void append(std::string_view line);

 private:
  std::filesystem::path path_;
  std::vector<std::string> lines_;
  std::string problem_;
};

}  // namespace sluice::apps
