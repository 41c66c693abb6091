// Rotary frequencies of a model, and how its config.json stretches them for longer contexts.
#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/config.h"

namespace sluice {

struct Rotary {
  std::vector<float> frequencies;  // [dim / 2]: what a position is multiplied by
  double attention_factor = 1;     // multiplies queries and keys after the rotation (YaRN)
};

/// Reads `rope_parameters` (transformers 5) or `rope_scaling` (4), with `rope_type` or `type`, and
/// `rope_theta` in either place. `dim`: elements of a head that are rotated. The known types are
///   default  theta^(-2i / dim)
///   linear   that, divided by `factor` (Chen et al., "Extending Context Window of Large Language Models via
///            Positional Interpolation", 2023)
///   yarn     high frequencies stay, low ones are divided by `factor`, with a ramp from `beta_fast` to
///   `beta_slow`
///            turns in `original_max_position_embeddings` (Peng et al., "YaRN", 2023)
///   llama3   likewise, with a ramp between wavelengths (Llama 3.1's published code)
/// Throws Error kUnsupported for other types (the message lists these), kBadFile for fields that are missing
/// or out of range.
Rotary read_rotary(const Config& config, int64_t dim, int64_t max_positions, double default_theta);

}  // namespace sluice
