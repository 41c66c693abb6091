// The weights of a decoder of standard attention and routed experts.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "experts/host_rows.h"
#include "models/dense_weights.h"
#include "models/model.h"
#include "models/moe_decoder/config.h"

namespace sluice::moe_decoder {

struct Attention {
  Matrix q, k, v, o;  // [heads * d, H], [kv_heads * d, H] twice, [H, heads * d]
  const float *q_bias = nullptr, *k_bias = nullptr, *v_bias = nullptr,
              *o_bias = nullptr;                     // null where the family or config.json has none
  const float *q_norm = nullptr, *k_norm = nullptr;  // [d], or [heads * d] and [kv_heads * d], or null
};

struct DenseMlp {
  Matrix gate, up, down;  // [I, H], [I, H], [H, I]
};

struct SharedExpert {
  DenseMlp mlp;  // of the shared expert's width
  Matrix gate;   // [1, H]
};

struct MoeMlp {
  int64_t index = 0;   // among the MoE layers
  Matrix router;       // [E, H]
  Matrix next_router;  // [E, H]: of the next MoE layer; without data in the last one
  std::optional<SharedExpert> shared;
};

struct Layer {
  const float *input_norm = nullptr, *post_attention_norm = nullptr;  // [H]
  Attention attention;
  std::optional<DenseMlp> dense;  // one of the two
  std::optional<MoeMlp> moe;
};

struct Weights {
  std::vector<Buffer> dense;  // the owners of what the views below show
  Matrix embedding, head;     // [V, H]
  const float* final_norm = nullptr;
  const float* rope_frequencies = nullptr;  // [d / 2]
  std::vector<LayerRows> expert_rows;       // of each MoE layer
  HostRowReport host_rows;
  std::vector<Layer> layers;
};

/// `expert_order`: the MoE layers in the order in which their experts are read; empty: their own.
Weights read_weights(const Checkpoint& checkpoint, const DecoderConfig& config, Device& device,
                     Stream& stream, const LoadOptions& options, std::span<const int64_t> expert_order);

}  // namespace sluice::moe_decoder
