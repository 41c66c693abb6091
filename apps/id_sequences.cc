// Reads token ids from JSON.
#include "apps/id_sequences.h"

#include <nlohmann/json.hpp>

#include "apps/input_limits.h"
#include "base/error.h"
#include "base/file.h"
#include "text/json_input.h"

namespace sluice::apps {
namespace {

using Json = nlohmann::ordered_json;

std::vector<int32_t> read_sequence(const Json& array, const std::string& place) {
  std::vector<int32_t> ids;
  for (const Json& item : array) {
    const bool fits = item.is_number_unsigned()
                          ? item.get<uint64_t>() <= INT32_MAX
                          : item.is_number_integer() && item.get<int64_t>() >= INT32_MIN &&
                                item.get<int64_t>() <= INT32_MAX;
    if (!fits)
      throw Error(ErrorCode::kBadFile, place + ": expected a token id, found " + describe_json(item));
    ids.push_back(item.get<int32_t>());
  }
  return ids;
}

}  // namespace

std::vector<std::vector<int32_t>> parse_id_sequences(std::string_view text, const std::string& place) {
  const Json json = parse_json(text, place, ErrorCode::kBadFile);
  if (!json.is_array()) {
    throw Error(ErrorCode::kBadFile, place + ": expected a JSON array of ids, or an array of such arrays");
  }
  if (json.empty() || !json[0].is_array()) return {read_sequence(json, place)};
  std::vector<std::vector<int32_t>> sequences;
  for (const Json& item : json) {
    if (!item.is_array()) {
      throw Error(ErrorCode::kBadFile, place + ": expected an array of ids, found " + describe_json(item));
    }
    sequences.push_back(read_sequence(item, place));
  }
  return sequences;
}

std::vector<std::vector<int32_t>> read_id_sequences(const std::string& file) {
  return parse_id_sequences(read_input(file, kMostInputBytes), input_name(file));
}

}  // namespace sluice::apps
