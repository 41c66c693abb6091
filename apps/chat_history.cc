// The history file.
#include "apps/chat_history.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/file.h"

namespace sluice::apps {
namespace {

// Empty: neither variable names an absolute path (the XDG specification wants others ignored).
std::filesystem::path history_folder() {
  for (const auto& [variable, below] :
       {std::pair{"XDG_STATE_HOME", "sluice"}, {"HOME", ".local/state/sluice"}}) {
    const char* value = std::getenv(variable);
    if (value != nullptr && std::filesystem::path(value).is_absolute())
      return std::filesystem::path(value) / below;
  }
  return {};
}

[[noreturn]] void fail(const std::filesystem::path& path, const char* what) {
  throw Error(ErrorCode::kIo, path.string() + ": cannot " + what + ": " + std::strerror(errno));
}

void create_private_folders(const std::filesystem::path& folder) {
  std::filesystem::path path;
  for (const auto& part : folder) {
    path /= part;
    if (::mkdir(path.c_str(), 0700) == 0 || std::filesystem::is_directory(path)) continue;
    fail(path, "create the folder");
  }
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end != 0) lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

int open_to_append(const std::filesystem::path& path) {
  return ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

void write_lines(const std::filesystem::path& path, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  write_file_atomically(path, text, 0600);
}

}  // namespace

ChatHistory ChatHistory::open() {
  ChatHistory history;
  try {
    const std::filesystem::path folder = history_folder();
    if (folder.empty()) throw Error(ErrorCode::kNotFound, "HOME is not set");
    create_private_folders(folder);
    const std::filesystem::path path = folder / "chat_history";
    const int fd = open_to_append(path);
    if (fd < 0) fail(path, "write");
    ::fchmod(fd, 0600);
    ::close(fd);
    history.lines_ = split_lines(read_text_file(path));
    const size_t count = history.lines_.size();
    if (count > kMostLines) {
      history.lines_.erase(history.lines_.begin(), history.lines_.end() - static_cast<ptrdiff_t>(kMostLines));
      if (count >= 2 * kMostLines) write_lines(path, history.lines_);
    }
    history.path_ = path;
  } catch (const Error& error) {
    history.problem_ = error.what();
  }
  return history;
}

void ChatHistory::append(std::string_view line) {
  if (path_.empty()) return;
  const int fd = open_to_append(path_);
  if (fd < 0) return;
  const std::string entry = std::string(line) + '\n';
  [[maybe_unused]] const ssize_t written = ::write(fd, entry.data(), entry.size());
  ::close(fd);
}

}  // namespace sluice::apps
