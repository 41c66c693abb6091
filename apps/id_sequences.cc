// Reads token ids from JSON.
#include "apps/id_sequences.h"

#include <nlohmann/json.hpp>

#include "apps/input_limits.h"
#include "base/error.h"
#include "base/file.h"

namespace sluice::apps {
namespace {

std::vector<int32_t> read_sequence(const nlohmann::json& array, const std::string& file) {
  std::vector<int32_t> ids;
  for (const auto& item : array) {
    const bool fits = item.is_number_unsigned()
                          ? item.get<uint64_t>() <= INT32_MAX
                          : item.is_number_integer() && item.get<int64_t>() >= INT32_MIN &&
                                item.get<int64_t>() <= INT32_MAX;
    if (!fits) throw Error(ErrorCode::kBadFile, file + ": expected a token id, found " + item.dump());
    ids.push_back(item.get<int32_t>());
  }
  return ids;
}

}  // namespace

std::vector<std::vector<int32_t>> read_id_sequences(const std::string& file) {
  const std::string text = read_input(file, kMostInputBytes), name = input_name(file);
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_array()) {
    throw Error(ErrorCode::kBadFile, name + ": expected a JSON array of ids, or an array of such arrays");
  }
  if (json.empty() || !json[0].is_array()) return {read_sequence(json, name)};
  std::vector<std::vector<int32_t>> sequences;
  for (const auto& item : json) {
    if (!item.is_array()) {
      throw Error(ErrorCode::kBadFile, name + ": expected an array of ids, found " + item.dump());
    }
    sequences.push_back(read_sequence(item, name));
  }
  return sequences;
}

}  // namespace sluice::apps
