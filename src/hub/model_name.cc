// The hub's rules for names.
#include "hub/model_name.h"

#include <algorithm>

namespace sluice::hub {
namespace {

constexpr size_t kMostCharacters = 96;
constexpr size_t kMostOfRevision = 200;

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
bool is_of_names(char c) { return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.'; }

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool is_part(std::string_view text) {
  if (text.empty() || text.size() > kMostCharacters || has(text, "--") || has(text, "..")) return false;
  const auto bad_end = [](char c) { return c == '-' || c == '.'; };
  return std::all_of(text.begin(), text.end(), is_of_names) && !bad_end(text.front()) &&
         !bad_end(text.back());
}

bool is_revision(std::string_view text) {
  const auto allowed = [](char c) { return is_of_names(c) || c == '/' || c == '+'; };
  return !text.empty() && text.size() <= kMostOfRevision && std::all_of(text.begin(), text.end(), allowed) &&
         !has(text, "..") && !has(text, "//") && !has(text, "/.") && text.front() != '/' &&
         text.front() != '.' && text.back() != '/';
}

}  // namespace

std::string ModelName::text() const { return revision.empty() ? repo : repo + '@' + revision; }

std::optional<ModelName> parse_model_name(std::string_view text) {
  ModelName name;
  const size_t at = text.find('@');
  if (at != std::string_view::npos) {
    name.revision = text.substr(at + 1);
    if (!is_revision(name.revision)) return {};
  }
  name.repo = text.substr(0, at);
  const size_t slash = name.repo.find('/');
  if (slash == std::string::npos) return {};
  const std::string_view repo = name.repo;
  if (!is_part(repo.substr(0, slash)) || !is_part(repo.substr(slash + 1))) return {};
  return name;
}

bool is_commit(std::string_view text) {
  return text.size() == 40 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace sluice::hub
