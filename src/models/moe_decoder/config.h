// Decoders of standard attention and routed experts: what their families differ in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/config.h"
#include "checkpoint/weights.h"
#include "models/rotary.h"

namespace sluice::moe_decoder {

/// Norms of queries and keys before the rotary embedding: none; one of head_dim weights for every head; one
/// over the whole projection.
enum class QkNorm { kNone, kEachHead, kWhole };

struct DecoderConfig {
  std::string family;
  int64_t vocab_size = 0, hidden = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0;
  int64_t dense_intermediate = 0, expert_intermediate = 0, experts = 0, top_k = 0;
  int64_t shared_intermediate = 0;  // of the shared expert, which a sigmoid gates; 0: none
  int64_t max_positions = 0;
  float rms_epsilon = 0;
  Rotary rotary;  // over the whole head
  QkNorm qk_norm = QkNorm::kNone;
  bool qkv_bias = false, o_bias = false;
  bool renormalise = false;  // the weights of the chosen experts sum to 1
  bool tied_embeddings = false;
  std::vector<bool> is_moe;  // for each layer
  /// Names inside a layer: of the MoE block (the first one that a checkpoint has) and of the projections.
  std::vector<std::string> moe_blocks = {"mlp"};
  ProjectionNames projections = kProjectionNames;
};

/// A family's own defaults where config.json leaves a field out.
struct Defaults {
  double rms_epsilon = 1e-6, rope_theta = 10000;
};

/// The language model's part of config.json: its `text_config` if it has one, else all of it.
Config language_config(const Config& config);

/// Reads what all families have, in the spellings of transformers 4 and 5; every layer has experts, and the
/// experts' width is the caller's. Throws Error kBadFile (missing, of a wrong type, out of range) or
/// kUnsupported (a value that nothing here can run: rope types, activations and sliding windows, with the
/// known ones).
DecoderConfig read_common(const Config& config, const Defaults& defaults);

/// Marks the layers that `decoder_sparse_step` and `mlp_only_layers` leave dense, and reads their width.
void read_dense_layers(const Config& config, DecoderConfig& decoder);

inline constexpr int64_t kMostWide = int64_t{1} << 24;  // no width of a published model comes near

}  // namespace sluice::moe_decoder
