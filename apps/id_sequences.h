// Token ids that a user gives as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sluice::apps {

/// One array of ids, or an array of such arrays. Throws Error kBadFile, which begins with `place`.
std::vector<std::vector<int32_t>> parse_id_sequences(std::string_view text, const std::string& place);
/// Of a file; `file` - is standard input. Throws Error kNotFound, kIo or kBadFile.
std::vector<std::vector<int32_t>> read_id_sequences(const std::string& file);

/// Calls `body`; an Error that it throws gets "sequence `index`: " in front.
template <class Body>
auto in_sequence(size_t index, Body body) {
  try {
    return body();
  } catch (const Error& error) {
    throw Error(error.code(), "sequence " + std::to_string(index) + ": " + error.what());
  }
}

}  // namespace sluice::apps
