// The files that a command line names, so that no output destroys an input or another output.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sluice::apps {

/// Collects what the options of a command name. An empty name stands for an option that was not given.
class FileUses {
 public:
  /// "-" is standard input.
  void reads(const std::string& option, const std::string& file);
  /// Every file that lies in the folder.
  void reads_folder(const std::string& option, const std::string& folder);
  /// `may_replace`: options whose files it may be, because they have been read by the time this one is
  /// written.
  void writes(const std::string& option, const std::string& file,
              const std::vector<std::string>& may_replace = {});
  /// A folder that is made anew.
  void writes_folder(const std::string& option, const std::string& folder);

  /// Compares files by what they are, not by their names: links and spellings of a path do not matter. Throws
  /// UsageError that names both options; otherwise the Error that writing would end with, see
  /// check_can_write.
  void check() const;
  /// Whether one of the outputs is standard output, by whatever name: nothing else may be written there then.
  bool writes_standard_output() const;

 private:
  using Identity = std::pair<dev_t, ino_t>;
  struct Use {
    std::string option, name;
    std::vector<std::string> may_replace;
    std::optional<Identity> file;  // of a regular file or folder that is there
    std::filesystem::path place;   // where a new one will be; empty if something is there
    bool is_folder = false, direct = false;
  };
  static std::optional<Identity> identity(int descriptor);
  static Use describe(const std::string& option, const std::string& name);
  static bool same(const Use& a, const Use& b);
  void check_against_streams(const Use& output) const;

  std::vector<Use> inputs_, outputs_;
};

}  // namespace sluice::apps
