// What surrounds the tensors of a converted checkpoint: configuration, index, tokenizer.
#pragma once

#include <filesystem>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/convert_plan.h"

namespace sluice {

/// config.json of `checkpoint` with the quantization_config that publishers of `format` write: ModelOpt's for
/// NVFP4 (and its hf_quant_config.json), `fp8` with blocks of 128 x 128 for FP8.
void write_converted_config(const Checkpoint& checkpoint, WeightFormat format,
                            const std::filesystem::path& folder);

/// model.safetensors.index.json; nothing for a single shard.
void write_index(const std::vector<ConvertShard>& shards, const std::filesystem::path& folder);

/// Copies tokenizer, template and generation files of the checkpoint in `from`.
void copy_companions(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace sluice
