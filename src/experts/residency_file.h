// A file that says which experts were resident, so that the next start is not cold.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "experts/slot_functions.h"
#include "experts/trace.h"

namespace sluice {

/// Whose experts a list names. Layers of Resident are MoE layers, counted from 0.
struct ResidencyModel {
  std::string family;  // "qwen3_moe"
  int32_t layers = 0, experts = 0, top_k = 0;
  uint64_t fingerprint = 0;  // of the checkpoint
  bool operator==(const ResidencyModel&) const = default;
};

/// Writes under a temporary name, then renames: a file with this name is always whole. `residents`: least
/// valuable first. Throws Error kIo.
void write_residency(const std::filesystem::path& path, const ResidencyModel& model,
                     std::span<const Resident> residents);

/// Throws Error (one line that names the file and what to do): kNotFound, kIo; kUnsupported for another
/// version of the format; kBadFile if it is no such file, cut short, damaged, or of another model.
std::vector<Resident> read_residency(const std::filesystem::path& path, const ResidencyModel& expected);

/// Whether a file is there that begins as such lists do.
bool is_residency_file(const std::filesystem::path& path);

/// The experts that a trace uses, least often used first (equally often: higher layers and ids first). Decode
/// steps alone count where there are any: their misses are what a user waits for.
std::vector<Resident> popularity(const Trace& trace);

/// All MoE layers, those first of which the fewest experts are among `residents`: the link reads the most of
/// them. Equal ones in their own order.
std::vector<int64_t> hottest_layers(std::span<const Resident> residents, int64_t layers);

}  // namespace sluice
