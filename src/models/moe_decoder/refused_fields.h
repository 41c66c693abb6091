// Fields of config.json that would change results and that nothing here follows.
#pragma once

#include "checkpoint/config.h"

namespace sluice::moe_decoder {

/// Throws Error kUnsupported that names the field, its value and the ones with which it changes nothing:
/// clipped projections, biases of the MLPs, routing by groups, scaled routing weights, capped logits.
/// `config` is the language model's part.
void refuse_fields_without_effect(const Config& config);
/// Likewise for a shared expert, in a family that has none.
void refuse_shared_expert(const Config& config);

}  // namespace sluice::moe_decoder
