// Finding e4m3 matrices and reading their scales.
#include "checkpoint/fp8.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/scalar.h"
#include "checkpoint/stored_checks.h"

namespace sluice::fp8 {
namespace {

const Tensor& scale_of(const Checkpoint& checkpoint, const std::string& module) {
  for (const char* suffix : {".weight_scale_inv", ".weight_scale"}) {
    if (const Tensor* scale = checkpoint.find(module + suffix)) return *scale;
  }
  const Tensor& weight = checkpoint.get(module + ".weight");
  throw Error(ErrorCode::kNotFound,
              weight.file + ": tensor '" + weight.name + "' has type F8_E4M3, but neither '" + module +
                  ".weight_scale_inv' nor '" + module + ".weight_scale' is there: download the model again");
}

std::vector<float> decode(const Tensor& scales) {
  if (scales.dtype != DType::kF8E8m0) return to_f32(scales);
  std::vector<float> values;
  for (const std::byte code : scales.bytes) values.push_back(e8m0_to_f32(static_cast<uint8_t>(code)));
  return values;
}

}  // namespace

bool is_stored(const Checkpoint& checkpoint, const std::string& module) {
  const Tensor* weight = checkpoint.find(module + ".weight");
  return weight != nullptr && weight->dtype == DType::kF8E4m3;
}

WeightFormat format_of(const Tensor& scale, std::span<const int64_t> shape, int64_t n, int64_t k) {
  const auto is = [&](std::initializer_list<int64_t> other) {
    return std::equal(shape.begin(), shape.end(), other.begin(), other.end());
  };
  const int64_t down = (n + kFp8BlockSize - 1) / kFp8BlockSize,
                across = (k + kFp8BlockSize - 1) / kFp8BlockSize;
  if (is({down, across})) return WeightFormat::kFp8Block;
  if (is({}) || is({1}) || is({n}) || is({n, 1})) return WeightFormat::kFp8Row;
  throw Error(ErrorCode::kBadFile,
              scale.file + ": tensor '" + scale.name + "' has shape " + format_shape(scale.shape) +
                  "; the scales of FP8 weights " + format_shape(std::array{n, k}) + " are [], [1], " +
                  format_shape(std::array{n, int64_t{1}}) + " or, for blocks of 128 x 128, " +
                  format_shape(std::array{down, across}));
}

StoredMatrix find(const Checkpoint& checkpoint, const std::string& module, int64_t n, int64_t k) {
  const Tensor& weight = checkpoint.get(module + ".weight", std::array{n, k});
  const Tensor& scale = scale_of(checkpoint, module);
  internal::check_type(scale, "FP8", {DType::kF32, DType::kBf16, DType::kF16, DType::kF8E8m0});
  const WeightFormat format = format_of(scale, scale.shape, n, k);
  return {format, n, k, StoredBytes::all_of(weight), StoredBytes::all_of(scale), 1.0f};
}

void read_scales(const StoredBytes& scale, std::span<float> out) {
  SLUICE_CHECK(scale.pieces == 1);
  Tensor part = *scale.tensor;
  part.bytes = part.bytes.subspan(scale.offset, scale.piece_bytes);
  const std::vector<float> values = decode(part);
  SLUICE_CHECK(values.size() == 1 || values.size() == out.size());
  for (const float value : values) internal::check_scale(part, value);
  for (size_t i = 0; i < out.size(); ++i) out[i] = values[values.size() == 1 ? 0 : i];
}

}  // namespace sluice::fp8
