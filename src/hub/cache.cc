// Finding models in the cache.
#include "hub/cache.h"

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "base/error.h"
#include "base/file.h"

namespace sluice::hub {
namespace {

namespace fs = std::filesystem;

// An empty variable counts as none, as in other programs that use the cache.
std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// HF_HOME="~/models" in a file of settings reaches us as it stands there.
fs::path without_tilde(const std::string& path) {
  const bool home = path == "~" || path.starts_with("~/");
  return home ? fs::path(environment("HOME") + path.substr(1)) : fs::path(path);
}

std::string trimmed(std::string text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  while (!text.empty() && is_space(text.back())) text.pop_back();
  return text;
}

}  // namespace

fs::path cache_folder() {
  for (const auto& [variable, below] :
       {std::pair("HF_HUB_CACHE", ""), {"HUGGINGFACE_HUB_CACHE", ""}, {"HF_HOME", "hub"}}) {
    if (const std::string value = environment(variable); !value.empty()) {
      return *below == '\0' ? without_tilde(value) : without_tilde(value) / below;
    }
  }
  const std::string shared = environment("XDG_CACHE_HOME");
  return (shared.empty() ? without_tilde("~/.cache") : without_tilde(shared)) / "huggingface/hub";
}

fs::path repo_folder(const fs::path& cache, const ModelName& name) {
  std::string folder = "models--" + name.repo;
  folder.replace(folder.find('/'), 1, "--");
  return cache / folder;
}

fs::path ref_file(const fs::path& repo, const std::string& revision) { return repo / "refs" / revision; }
fs::path snapshot_folder(const fs::path& repo, const std::string& commit) {
  return repo / "snapshots" / commit;
}

std::optional<fs::path> find_snapshot(const fs::path& cache, const ModelName& name) {
  const fs::path repo = repo_folder(cache, name);
  std::string commit = name.revision_or_main();
  std::error_code ignored;
  if (!is_commit(commit)) {
    const fs::path ref = ref_file(repo, commit);
    if (!fs::is_regular_file(ref, ignored)) return {};
    constexpr size_t kMostBytes = 1000;
    commit = trimmed(read_text_file(ref, kMostBytes));
    if (!is_commit(commit)) {
      throw Error(ErrorCode::kBadFile, ref.string() + ": names no commit; remove it and pull again");
    }
  }
  const fs::path snapshot = snapshot_folder(repo, commit);
  if (!fs::is_directory(snapshot, ignored)) return {};
  return snapshot;
}

}  // namespace sluice::hub
