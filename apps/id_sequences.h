// Token ids that a user gives as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::apps {

/// One array of ids, or an array of such arrays; `file` - is standard input. Throws Error kNotFound, kIo or
/// kBadFile.
std::vector<std::vector<int32_t>> read_id_sequences(const std::string& file);

}  // namespace sluice::apps
