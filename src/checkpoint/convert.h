// Converting a checkpoint: experts and other layers quantised, the rest copied, one tensor in memory at a
// time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "checkpoint/weights.h"

namespace sluice {

inline constexpr uint64_t kDefaultShardBytes = 5'000'000'000;

struct ConvertOptions {
  std::filesystem::path model, out;
  WeightFormat format = WeightFormat::kNvfp4;     // or kFp8Block
  uint64_t max_shard_bytes = kDefaultShardBytes;  // of tensors in a file; a larger tensor has its own
  int threads = 0;                                // as ThreadPool
  // Of the input, at the start and after each piece of work; may throw to stop the conversion.
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)> progress = {};
};

struct ConvertSummary {
  uint64_t bytes_read = 0, bytes_written = 0;  // of tensors
  int64_t tensors_quantised = 0, tensors_copied = 0;
  int64_t shards = 0;
  int64_t shards_kept = 0;  // of them, those that an interrupted conversion had finished
};

/// Writes `out` with tensors of is_quantised (checkpoint/convert_plan.h) in `format`, config.json with a
/// quantization_config, and the tokenizer, template and generation files.
///   kNvfp4     the experts as ModelOpt has them: `.weight`, `.weight_scale`, `.weight_scale_2`
///   kFp8Block  `.weight` e4m3 and `.weight_scale_inv` F32, a scale for 128 x 128, as DeepSeek has them
/// The folder appears under its name when it is complete; until then it is partial_folder(out). What is
/// finished of it stays there if the conversion is stopped (killed, out of disk, an exception of `progress`),
/// and the next call with the same options goes on from it, with the same bytes in the end. Throws Error:
/// kInvalidArgument as ConvertFolder, kUnsupported (already quantised, no routed experts, shapes that the
/// format cannot hold), kBadFile (a weight that is not finite), kIo (no room: checked before tensors are
/// written).
ConvertSummary convert(const ConvertOptions& options);

}  // namespace sluice
