// Weights in a checkpoint that its config.json does not ask for.
#pragma once

#include "checkpoint/checkpoint.h"
#include "models/moe_decoder/config.h"
#include "models/moe_decoder/names.h"

namespace sluice::moe_decoder {

/// Throws Error kBadFile that names the first tensor of a layer which the model would leave out although it
/// changes what the model says: config.json then belongs to another model, or to another family. Left out
/// without complaint: layers for multi-token prediction (num_nextn_predict_layers), scales of activations and
/// of the KV cache, stored rotary frequencies, and what lies outside of the layers.
void refuse_unused_layer_weights(const Checkpoint& checkpoint, const DecoderConfig& config,
                                 const Names& names);

}  // namespace sluice::moe_decoder
