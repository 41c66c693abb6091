// Which experts the next layer will probably want.
#pragma once

#include "device/stream.h"

namespace sluice {

/// The experts of the next layer in order of preference, from its router's logits [rows, experts] on this
/// layer's input: first each row's highest, then each row's second, and so on; repeats are left out. Only the
/// first 8 rows count: with more the union is no forecast any more. `ids` [experts] is filled up with -1.
void rank_forecast(Stream& stream, const float* logits, int64_t rows, int64_t experts, int64_t top_k,
                   int32_t* ids);

}  // namespace sluice
