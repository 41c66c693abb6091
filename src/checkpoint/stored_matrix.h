// Matrices in a checkpoint: which tensors hold one, in which format, and its bytes in the layout of
// checkpoint/weight_format.h. The tensors decide: what a configuration says about a module is not asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/weight_format.h"

namespace sluice {

/// Pieces of a tensor's bytes, `piece_bytes` each, from `offset` on, one every `stride` bytes.
struct StoredBytes {
  const Tensor* tensor = nullptr;  // null: there are none
  size_t offset = 0, piece_bytes = 0, stride = 0, pieces = 1;

  static StoredBytes all_of(const Tensor& tensor) {
    return {&tensor, 0, tensor.bytes.size(), tensor.bytes.size(), 1};
  }
  size_t bytes() const { return piece_bytes * pieces; }
};

/// A matrix [n, k] in the checkpoint. Scales of FP8 may be stored in F32, BF16, F16 or E8M0, one for the
/// whole matrix, a row, or a block.
struct StoredMatrix {
  WeightFormat format = WeightFormat::kBf16;
  int64_t n = 0, k = 0;
  StoredBytes weight, scale;
  float global = 1.0f;
};

/// Finds the matrix of `module` ("model.layers.0.self_attn.q_proj") by the names of the formats:
///   F32, F16, BF16      `.weight`
///   FP8                 `.weight` e4m3 with `.weight_scale_inv` [blocks] or `.weight_scale` [], [1], [n],
///                       [n, 1] or [blocks] (the published FP8 checkpoints, compressed-tensors, ModelOpt)
///   NVFP4, ModelOpt     `.weight` u8, `.weight_scale` e4m3, `.weight_scale_2`
///   NVFP4, compressed-tensors  `.weight_packed`, `.weight_scale`, `.weight_global_scale` (the reciprocal)
///   MXFP4               `.weight` or `.weight_packed` u8, `.weight_scale` u8 [n, k/32]
/// Throws Error kNotFound, kBadFile (type or shape, expected and actual; a scale that is negative or not
/// finite) or kUnsupported (other formats by name, with the list of what is supported).
StoredMatrix find_matrix(const Checkpoint& checkpoint, const std::string& module, int64_t n, int64_t k);

/// The numbers and the scales of `matrix`; `out` has weight_bytes and scale_bytes. Throws Error kBadFile for
/// an FP8 scale that is negative or not finite.
void read_weight(const StoredMatrix& matrix, std::span<std::byte> out);
void read_scale(const StoredMatrix& matrix, std::span<std::byte> out);
/// The matrix as f32 [n, k], for small ones.
std::vector<float> to_f32(const StoredMatrix& matrix);

}  // namespace sluice
