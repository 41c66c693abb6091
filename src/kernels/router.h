// Routers: from scores to the chosen experts.
#pragma once

#include "device/stream.h"

namespace sluice {

/// softmax over all experts, then the k highest, ties to the lower id (Qwen3-MoE, Mixtral, OLMoE).
/// logits [rows, experts]; ids and weights [rows, k], descending score. `renormalise` divides the weights by
/// their sum.
void router_top_k(Stream& stream, const float* logits, int64_t rows, int64_t experts, int64_t k,
                  bool renormalise, int32_t* ids, float* weights);

}  // namespace sluice
