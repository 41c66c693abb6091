// Names of models on a hub: `org/name`, and `org/name@revision` for a branch, a tag or a commit.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice::hub {

struct ModelName {
  std::string repo;          // "org/name"
  std::string revision;      // empty: none given, which means "main"
  std::string text() const;  // as it was written
  std::string revision_or_main() const { return revision.empty() ? "main" : revision; }
};

/// By the hub's rules: letters, digits, '-', '_' and '.' on both sides of one slash, at most 96 of them each,
/// neither "--" nor "..", no '-' or '.' at an end. A revision may have slashes, and no part of it is a path
/// upwards. Nothing for any other text.
std::optional<ModelName> parse_model_name(std::string_view text);

/// Whether `text` is a whole hash of a commit: 40 digits of base 16.
bool is_commit(std::string_view text);

}  // namespace sluice::hub
