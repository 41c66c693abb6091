// Finding and decoding NVFP4 matrices.
#include "checkpoint/nvfp4.h"

#include <array>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/scalar.h"

namespace sluice::nvfp4 {
namespace {

void check_type(const Tensor& tensor, DType expected) {
  if (tensor.dtype == expected) return;
  throw Error(ErrorCode::kBadFile, tensor.file + ": tensor '" + tensor.name + "' has type " +
                                       std::string(name_of(tensor.dtype)) + ", NVFP4 needs " +
                                       std::string(name_of(expected)));
}

float read_global(const Tensor& tensor) {
  check_type(tensor, DType::kF32);
  if (tensor.elements() != 1) {
    throw Error(ErrorCode::kBadFile, tensor.file + ": tensor '" + tensor.name + "' has shape " +
                                         format_shape(tensor.shape) + ", NVFP4 needs one number");
  }
  float value = 0;
  std::memcpy(&value, tensor.bytes.data(), sizeof value);
  if (!std::isfinite(value) || value < 0) {
    throw Error(ErrorCode::kBadFile, tensor.file + ": tensor '" + tensor.name + "' is " +
                                         std::to_string(value) + ", a scale must be finite and not negative");
  }
  return value;
}

}  // namespace

bool is_stored(const Checkpoint& checkpoint, const std::string& module) {
  const Tensor* weight = checkpoint.find(module + ".weight");
  return weight != nullptr && weight->dtype == DType::kU8 &&
         checkpoint.find(module + ".weight_scale") != nullptr;
}

StoredMatrix find(const Checkpoint& checkpoint, const std::string& module, int64_t n, int64_t k) {
  if (k % kGroup != 0) {
    throw Error(ErrorCode::kUnsupported, checkpoint.folder().string() + ": '" + module + "' has " +
                                             std::to_string(k) + " columns, NVFP4 needs a multiple of 16");
  }
  StoredMatrix matrix{WeightFormat::kNvfp4, n, k, nullptr, nullptr, 1.0f};
  matrix.weight = &checkpoint.get(module + ".weight", std::array{n, k / 2});
  matrix.scale = &checkpoint.get(module + ".weight_scale", std::array{n, k / kGroup});
  check_type(*matrix.scale, DType::kF8E4m3);
  matrix.global = read_global(checkpoint.get(module + ".weight_scale_2"));
  return matrix;
}

std::vector<float> to_f32(const StoredMatrix& matrix) {
  SLUICE_CHECK(matrix.format == WeightFormat::kNvfp4);
  std::vector<float> values(static_cast<size_t>(matrix.n * matrix.k));
  for (size_t i = 0; i < values.size(); i += 2) {
    const float scale = kE4m3Values[static_cast<uint8_t>(matrix.scale->bytes[i / kGroup])] * matrix.global;
    const auto pair = static_cast<uint8_t>(matrix.weight->bytes[i / 2]);
    values[i] = e2m1_to_f32(pair & 15u) * scale;
    values[i + 1] = e2m1_to_f32(pair >> 4) * scale;
  }
  return values;
}

}  // namespace sluice::nvfp4
