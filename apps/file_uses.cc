// Compares the files of a command line.
#include "apps/file_uses.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "apps/usage_error.h"
#include "base/file.h"

namespace sluice::apps {
namespace {

namespace fs = std::filesystem;

// Pipes and devices may be shared: nothing in them is replaced.
bool can_be_destroyed(const struct stat& status) {
  return S_ISREG(status.st_mode) || S_ISDIR(status.st_mode);
}

}  // namespace

std::optional<FileUses::Identity> FileUses::identity(int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !can_be_destroyed(status)) return {};
  return Identity{status.st_dev, status.st_ino};
}

FileUses::Use FileUses::describe(const std::string& option, const std::string& name) {
  Use use;
  use.option = option;
  use.name = name;
  struct stat status {};
  if (::stat(name.c_str(), &status) == 0) {
    if (can_be_destroyed(status)) use.file = Identity{status.st_dev, status.st_ino};
  } else {
    use.place = output_place(name).path;
  }
  return use;
}

bool FileUses::same(const Use& a, const Use& b) {
  if (a.file || b.file) return a.file == b.file;
  return !a.place.empty() && a.place == b.place;
}

void FileUses::reads(const std::string& option, const std::string& file) {
  Use use;
  use.option = option;
  use.name = input_name(file);
  struct stat status {};
  if (file == "-") {
    use.file = identity(STDIN_FILENO);
  } else if (::stat(file.c_str(), &status) == 0 && can_be_destroyed(status)) {
    use.file = Identity{status.st_dev, status.st_ino};
  }
  if (use.file) inputs_.push_back(use);  // what is not there cannot be destroyed; reading it says so
}

void FileUses::reads_folder(const std::string& option, const std::string& folder) {
  reads(option, folder);
  std::error_code ignored;  // the command says what is wrong with the folder
  for (fs::directory_iterator it(folder, ignored), end; !ignored && it != end; it.increment(ignored)) {
    reads(option, it->path().string());
  }
}

void FileUses::writes(const std::string& option, const std::string& file,
                      const std::vector<std::string>& may_replace) {
  if (file.empty()) return;
  if (file == "-") {
    throw UsageError(option + " -: standard output is /dev/stdout, a file of that name is ./-");
  }
  Use use = describe(option, file);
  use.may_replace = may_replace;
  std::error_code ignored;
  use.direct = !fs::is_directory(file, ignored) && output_place(file).direct;
  outputs_.push_back(use);
}

void FileUses::writes_folder(const std::string& option, const std::string& folder) {
  Use use = describe(option, folder);
  use.is_folder = true;
  outputs_.push_back(use);
}

void FileUses::check_against_streams(const Use& output) const {
  if (output.direct) return;  // /dev/stdout: meant so
  for (const auto& [descriptor, name] :
       {std::pair(STDOUT_FILENO, "standard output"), {STDERR_FILENO, "standard error"}}) {
    if (output.file && output.file == identity(descriptor)) {
      throw UsageError(output.option + " " + output.name + ": " + name + " goes to this file");
    }
  }
}

bool FileUses::writes_standard_output() const {
  struct stat standard {
  }, null{};
  if (::fstat(STDOUT_FILENO, &standard) != 0) return false;
  const auto same_file = [](const struct stat& a, const struct stat& b) {
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
  };
  if (::stat("/dev/null", &null) == 0 && same_file(standard, null)) return false;  // nobody reads it
  return std::any_of(outputs_.begin(), outputs_.end(), [&](const Use& output) {
    struct stat status {};
    return output.direct && ::stat(output.name.c_str(), &status) == 0 && same_file(status, standard);
  });
}

void FileUses::check() const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Use& output = outputs_[i];
    for (const Use& input : inputs_) {
      const auto& allowed = output.may_replace;
      if (!same(output, input) || std::find(allowed.begin(), allowed.end(), input.option) != allowed.end()) {
        continue;
      }
      throw UsageError(output.option + " " + output.name + ": would replace a file of " + input.option +
                       " (" + input.name + ")");
    }
    for (size_t j = 0; j < i; ++j) {
      if (!same(output, outputs_[j])) continue;
      throw UsageError(outputs_[j].option + " " + outputs_[j].name + " and " + output.option + " " +
                       output.name + ": the same file cannot hold both");
    }
    check_against_streams(output);
  }
  for (const Use& output : outputs_) {
    if (!output.is_folder) check_can_write(output.name);
  }
}

}  // namespace sluice::apps
