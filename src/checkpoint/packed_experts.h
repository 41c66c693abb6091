// All experts of a layer in one tensor for gate and up, and one for down.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/stored_matrix.h"

namespace sluice::packed_experts {

/// Whether `prefix` has experts in one of these layouts (H hidden, I intermediate, E experts):
///   `.gate_up_proj` [E, 2I, H], `.down_proj` [E, H, I]: F32, F16, BF16, or e4m3 with
///       `.gate_up_proj_scale_inv` and `.down_proj_scale_inv` [E, blocks of 128 x 128]; the gate's rows, then
///       the up projection's;
///   `.gate_up_proj_blocks` [E, 2I, H/32, 16], `_scales` [E, 2I, H/32], and the same for down: MXFP4 as
///       gpt-oss has it; rows of gate and up alternate. Biases are not part of the rows.
bool are_stored(const Checkpoint& checkpoint, const std::string& prefix);

/// Gate, up and down of each expert, [3 * experts]. Throws as find_matrix.
std::vector<StoredMatrix> find(const Checkpoint& checkpoint, const std::string& prefix, int64_t experts,
                               int64_t hidden, int64_t intermediate);

}  // namespace sluice::packed_experts
