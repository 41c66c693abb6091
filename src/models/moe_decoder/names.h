// How a checkpoint names the parts of a decoder.
#pragma once

#include <string>

#include "checkpoint/checkpoint.h"
#include "models/moe_decoder/config.h"

namespace sluice::moe_decoder {

struct Names {
  std::string model;      // "model.", or "model.language_model." where there is a vision part beside it
  std::string head;       // "lm_head"
  std::string moe_block;  // "mlp"

  std::string layer(int64_t l) const { return model + "layers." + std::to_string(l) + "."; }
  std::string moe(int64_t l) const { return layer(l) + moe_block + "."; }
};

/// Found by the tensors that the checkpoint holds.
Names find_names(const Checkpoint& checkpoint, const DecoderConfig& config);

}  // namespace sluice::moe_decoder
