// Reads /proc/meminfo and control groups.
#include "base/host_memory.h"

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <optional>
#include <sstream>
#include <vector>

namespace sluice {
namespace {

namespace fs = std::filesystem;

std::optional<uint64_t> read_number(const fs::path& path) {
  std::ifstream file(path);
  uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;  // not there, or "max"
}

/// The sum of the lines "KEY VALUE" or "KEY: VALUE ..." with one of these keys.
std::optional<uint64_t> read_keys(const fs::path& path, std::initializer_list<std::string_view> keys) {
  std::ifstream file(path);
  std::optional<uint64_t> sum;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    uint64_t value = 0;
    if (!(words >> key >> value)) continue;
    for (const std::string_view wanted : keys) {
      if (key == wanted) sum = sum.value_or(0) + value;
    }
  }
  return sum;
}

/// Names that the two versions of control groups have for the same numbers.
struct GroupFiles {
  const char *limit, *usage, *inactive, *active;
};
constexpr GroupFiles kVersion1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file",
                                  "total_active_file"};
constexpr GroupFiles kVersion2 = {"memory.max", "memory.current", "inactive_file", "active_file"};

class Search {
 public:
  explicit Search(const fs::path& root) : root_(root) {}

  HostMemory run() {
    if (const auto kib = read_keys(root_ / "proc/meminfo", {"MemAvailable:"})) {
      lower(*kib * 1024, "MemAvailable of /proc/meminfo");
    }
    std::ifstream groups(root_ / "proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
      // "4:memory:/box/inner", in version 2 "0::/box/inner".
      const size_t first = line.find(':'), second = line.find(':', first + 1);
      if (second == std::string::npos) continue;
      const std::string controllers = line.substr(first + 1, second - first - 1);
      const fs::path group = fs::path(line.substr(second + 1)).relative_path();
      if (controllers.empty()) {
        climb("sys/fs/cgroup", group, kVersion2);
        climb("sys/fs/cgroup/unified", group, kVersion2);
      } else if (("," + controllers + ",").find(",memory,") != std::string::npos) {
        climb("sys/fs/cgroup/memory", group, kVersion1);
      }
    }
    return least_;
  }

 private:
  void lower(uint64_t bytes, const std::string& limit) {
    if (bytes < least_.free_bytes) least_ = {bytes, limit};
  }

  // A group's parents limit it too. Inside a container the outer part of the path is not there.
  void climb(const fs::path& mount, fs::path group, const GroupFiles& files) {
    for (;; group = group.parent_path()) {
      look(group.empty() ? mount : mount / group, files);
      if (group.empty()) return;
    }
  }

  void look(const fs::path& folder, const GroupFiles& files) {
    const fs::path group = root_ / folder;
    const auto limit = read_number(group / files.limit), usage = read_number(group / files.usage);
    if (!limit || !usage) return;
    const uint64_t cache = read_keys(group / "memory.stat", {files.inactive, files.active}).value_or(0);
    const uint64_t used = *usage - std::min(*usage, cache);
    lower(*limit - std::min(*limit, used), "/" + (folder / files.limit).string());
  }

  const fs::path root_;
  HostMemory least_;
};

}  // namespace

HostMemory free_host_memory(const fs::path& root) { return Search(root).run(); }

}  // namespace sluice
