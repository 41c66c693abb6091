// What a conversion writes, decided from headers alone: which tensors, in which file, how many bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors_writer.h"
#include "checkpoint/weight_format.h"

namespace sluice {

/// Whether a tensor is a routed expert's projection: "...mlp.experts.17.gate_proj.weight", or Mixtral's
/// "...block_sparse_moe.experts.7.w1.weight".
bool is_expert_weight(std::string_view name);
/// Whether a tensor is a layer's linear projection outside of the experts, and of the kind that published FP8
/// checkpoints quantise: of attention, of dense and of shared feed-forward networks; no router or gate, no
/// embedding, no part of a vision tower.
bool is_dense_projection(std::string_view name);
/// Whether a conversion to `format` quantises a tensor: routed experts for NVFP4; those and the matrices of
/// dense projections for FP8.
bool is_quantised(const Tensor& tensor, WeightFormat format);

/// One tensor of the input with what becomes of it.
struct ConvertJob {
  const Tensor* source = nullptr;
  bool quantise = false;
  std::vector<size_t> outputs;  // indices of the shard's specs: the copy; or codes, scales and NVFP4's global
};

struct ConvertShard {
  std::string file;
  std::vector<TensorSpec> specs;  // in the file's order
  std::vector<ConvertJob> jobs;
  uint64_t bytes() const;
  uint64_t source_bytes() const;
};

/// Shards of at most `max_shard_bytes` of tensors (a larger tensor has one of its own), named as the
/// reference names them. Throws Error kUnsupported as convert does.
std::vector<ConvertShard> plan_conversion(const Checkpoint& checkpoint, WeightFormat format,
                                          uint64_t max_shard_bytes);

}  // namespace sluice
