// The storage layouts of four-bit floats: NVFP4 as ModelOpt and compressed-tensors write it, and MXFP4.
#pragma once

#include <string>

#include "checkpoint/stored_matrix.h"

namespace sluice::fp4 {

/// Which layout `module` is stored in, by its tensors alone; kNone: in none of these.
/// `input_scale` and `input_global_scale` belong to quantised activations and are not read: activations stay
/// as they are here.
enum class Layout { kNone, kNvfp4ModelOpt, kNvfp4CompressedTensors, kMxfp4 };
Layout layout_of(const Checkpoint& checkpoint, const std::string& module);

/// The matrix [n, k] of `module`, whose layout is not kNone. Throws as find_matrix.
StoredMatrix find(const Checkpoint& checkpoint, const std::string& module, int64_t n, int64_t k);

}  // namespace sluice::fp4
