// Copies dense weights, one buffer a tensor.
#include "models/dense_weights.h"

#include <span>
#include <string>
#include <utility>

namespace sluice {

DenseWeightReader::DenseWeightReader(const Checkpoint& checkpoint, Device& device, Stream& stream,
                                     Compute compute, std::function<void(size_t)> progress)
    : checkpoint_(checkpoint),
      device_(device),
      stream_(stream),
      compute_(compute),
      progress_(std::move(progress)) {}

void* DenseWeightReader::upload(const void* data, size_t bytes, const std::string& name) {
  Buffer& buffer = buffers_.emplace_back(device_.allocate(bytes, name));
  stream_.copy("upload", buffer.data(), data, bytes);
  device_.wait(stream_, "load");  // the source may be a temporary
  if (progress_) progress_(bytes);
  return buffer.data();
}

Matrix DenseWeightReader::matrix(const std::string& module, int64_t n, int64_t k) {
  const StoredMatrix stored = find_matrix(checkpoint_, module, n, k);
  Matrix matrix{{stored.format, n, k, nullptr, nullptr, stored.global}, compute_};
  const Tensor& weight = *stored.weight.tensor;
  matrix.data = upload(weight.bytes.data(), weight.bytes.size(), weight.name);
  if (stored.scale.tensor != nullptr) {
    std::vector<std::byte> scale(scale_bytes(stored.format, n, k));
    read_scale(stored, scale);
    matrix.scale = upload(scale.data(), scale.size(), stored.scale.tensor->name);
  }
  return matrix;
}

const float* DenseWeightReader::vector(const std::string& name, int64_t n) {
  const int64_t shape[] = {n};
  const std::vector<float> values = to_f32(checkpoint_.get(name, shape));
  return static_cast<const float*>(upload(values.data(), values.size() * sizeof(float), name));
}

const float* DenseWeightReader::constants(const std::vector<float>& values) {
  return static_cast<const float*>(upload(values.data(), values.size() * sizeof(float), "constants"));
}

}  // namespace sluice
