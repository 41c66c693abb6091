// NVFP4 in ModelOpt's layout: `weight` u8 [n, k/2], `weight_scale` e4m3 [n, k/16], `weight_scale_2` f32
// scalar. `input_scale` belongs to quantised activations and is not read: activations stay as they are here.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/weights.h"

namespace sluice::nvfp4 {

inline constexpr int64_t kGroup = 16;  // columns that share an e4m3 scale

/// Whether `module` is stored in this layout, by its tensors alone.
bool is_stored(const Checkpoint& checkpoint, const std::string& module);

/// The matrix [n, k] of `module`, for which is_stored holds. Throws Error kBadFile for a wrong type or shape
/// or a global that is negative or not finite, kNotFound for a missing scale, kUnsupported if k is no
/// multiple of kGroup.
StoredMatrix find(const Checkpoint& checkpoint, const std::string& module, int64_t n, int64_t k);

/// [n, k] as f32. value = code * (scale * global), each product rounded to f32.
std::vector<float> to_f32(const StoredMatrix& matrix);

}  // namespace sluice::nvfp4
