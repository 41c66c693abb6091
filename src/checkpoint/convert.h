// Converting a checkpoint: routed experts quantised, everything else copied, one tensor in memory at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "checkpoint/weights.h"

namespace sluice {

struct ConvertOptions {
  std::filesystem::path model, out;
  WeightFormat format = WeightFormat::kNvfp4;  // of the routed experts; kNvfp4 is the one that can be written
  uint64_t max_shard_bytes = 5'000'000'000;    // of tensors in a file; a larger tensor has a file of its own
  int threads = 0;                             // as ThreadPool
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)> progress =
      {};  // of the input, after each tensor
};

struct ConvertSummary {
  uint64_t bytes_read = 0, bytes_written = 0;  // of tensors
  int64_t tensors_quantised = 0, tensors_copied = 0;
  int64_t shards = 0;
};

/// Writes `out` with the experts' projections (`*.mlp.experts.E.{gate,up,down}_proj.weight`) in `format`,
/// config.json with a quantization_config, and the tokenizer, template and generation files. The folder
/// appears under its name when it is complete; until then it is `out`.partial, which is removed if the
/// conversion fails. Throws Error: kInvalidArgument (`out` exists and is not empty, or `out`.partial exists),
/// kUnsupported (already quantised, no such experts, shapes that the format cannot hold), kBadFile (a weight
/// that is not finite), kIo (no room: checked before anything is written).
ConvertSummary convert(const ConvertOptions& options);

}  // namespace sluice
