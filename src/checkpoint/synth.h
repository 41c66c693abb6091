// Checkpoints of random weights, of any shape: for measurements without a real model. What such a model says
// means nothing, and it does not route as a trained one does.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint.h"
#include "checkpoint/weight_format.h"

namespace sluice {

/// Sizes of a decoder with standard attention. With a shared expert it is written as Qwen2-MoE, without as
/// Qwen3-MoE.
struct SynthShape {
  std::string name, what;  // "q36", one line for people
  int64_t layers = 0, hidden = 0, vocab_size = 0;
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  int64_t experts = 0, top_k = 0, intermediate = 0;  // in each layer
  int64_t shared_intermediate = 0;                   // of the shared expert; 0: none
  WeightFormat format = WeightFormat::kNvfp4;        // of the routed experts; everything else is BF16
};

/// Shapes of published models' experts. Throws Error kNotFound that lists the names.
const SynthShape& synth_shape(std::string_view name);
std::span<const SynthShape> synth_shapes();

/// The formats that experts can have, by name_of().
inline constexpr WeightFormat kSynthFormats[] = {WeightFormat::kBf16, WeightFormat::kFp8Block,
                                                 WeightFormat::kNvfp4, WeightFormat::kMxfp4};

/// Bytes of all tensors.
uint64_t synth_bytes(const SynthShape& shape);

/// The checkpoint in memory. Tensors share one block of random bytes, a little more than the largest of them
/// takes, each at a place of its own in it; the same shape and seed give the same bytes. Throws Error
/// kInvalidArgument for sizes that the format cannot hold, kOutOfMemory.
Checkpoint make_synth(const SynthShape& shape, uint64_t seed);

/// Writes the same tensors to a new folder, in shards of 5 GB with an index, and config.json; there is no
/// tokenizer. The folder appears under its name once it is complete. `progress` gets the bytes of tensors
/// that were written. Throws as make_synth, and Error kInvalidArgument (`folder` exists) or kIo (no room:
/// checked before anything is written).
void write_synth(const SynthShape& shape, uint64_t seed, const std::filesystem::path& folder,
                 const std::function<void(uint64_t done, uint64_t total)>& progress);

}  // namespace sluice
