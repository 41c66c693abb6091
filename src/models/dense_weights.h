// Weights that every token uses, copied from a checkpoint into device memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/weights.h"
#include "device/device.h"
#include "kernels/matrix.h"

namespace sluice {

/// Copies tensors one by one. The views that it gives live as long as the buffers that take_buffers() hands
/// over.
class DenseWeightReader {
 public:
  /// `compute`: of the matrices that it gives. `progress` gets the bytes of each tensor that was copied; may
  /// be empty.
  DenseWeightReader(const Checkpoint& checkpoint, Device& device, Stream& stream, Compute compute,
                    std::function<void(size_t)> progress);

  /// The projection `module` [n, k] in the checkpoint's own format. Throws as find_matrix.
  Matrix matrix(const std::string& module, int64_t n, int64_t k);
  /// The tensor `name` [n] as f32.
  const float* vector(const std::string& name, int64_t n);
  /// `values` as f32 on the device.
  const float* constants(const std::vector<float>& values);

  /// The owners of everything read so far; call once, at the end.
  std::vector<Buffer> take_buffers() { return std::move(buffers_); }

 private:
  void* upload(const void* data, size_t bytes, const std::string& name);

  const Checkpoint& checkpoint_;
  Device& device_;
  Stream& stream_;
  const Compute compute_;
  std::function<void(size_t)> progress_;
  std::vector<Buffer> buffers_;
};

}  // namespace sluice
