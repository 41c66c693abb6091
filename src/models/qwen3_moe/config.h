// The fields of config.json that Qwen3-MoE has.
#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/config.h"

namespace sluice::qwen3_moe {

struct ModelConfig {
  int64_t vocab_size, hidden, layers, heads, kv_heads, head_dim;
  int64_t dense_intermediate, expert_intermediate, experts, top_k;
  int64_t max_positions;
  float rms_epsilon;
  double rope_theta;
  bool renormalise, attention_bias, tied_embeddings;
  std::vector<bool> is_moe;  // for each layer
};

/// Throws Error kBadFile (missing, of a wrong type, out of range) or kUnsupported (a value that nothing here
/// can run).
ModelConfig read_config(const Config& config);

}  // namespace sluice::qwen3_moe
