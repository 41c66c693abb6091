// Finding matrices of four-bit floats.
#include "checkpoint/fp4.h"

#include <array>

#include "base/error.h"
#include "checkpoint/stored_checks.h"

namespace sluice::fp4 {
namespace {

// compressed-tensors keeps the factor that the weights were multiplied with; what decodes them is 1 / value.
float reciprocal_of(const Tensor& tensor) {
  const float value = internal::read_scalar_scale(tensor, "NVFP4");
  if (value > 0) return 1.0f / value;
  throw Error(ErrorCode::kBadFile,
              tensor.file + ": tensor '" + tensor.name + "' is 0, and weights are divided by it");
}

StoredMatrix find_nvfp4(const Checkpoint& checkpoint, const std::string& module, int64_t n, int64_t k,
                        bool model_opt) {
  internal::check_columns(checkpoint, module, WeightFormat::kNvfp4, k);
  const Tensor& codes =
      checkpoint.get(module + (model_opt ? ".weight" : ".weight_packed"), std::array{n, k / 2});
  const Tensor& scale = checkpoint.get(module + ".weight_scale", std::array{n, k / kNvfp4Group});
  internal::check_type(codes, "NVFP4", {DType::kU8});
  internal::check_type(scale, "NVFP4", {DType::kF8E4m3});
  const float global = model_opt
                           ? internal::read_scalar_scale(checkpoint.get(module + ".weight_scale_2"), "NVFP4")
                           : reciprocal_of(checkpoint.get(module + ".weight_global_scale"));
  return {WeightFormat::kNvfp4, n, k, StoredBytes::all_of(codes), StoredBytes::all_of(scale), global};
}

StoredMatrix find_mxfp4(const Checkpoint& checkpoint, const std::string& module, int64_t n, int64_t k) {
  internal::check_columns(checkpoint, module, WeightFormat::kMxfp4, k);
  const bool packed = checkpoint.find(module + ".weight_packed") != nullptr;
  const Tensor& codes =
      checkpoint.get(module + (packed ? ".weight_packed" : ".weight"), std::array{n, k / 2});
  const Tensor& scale = checkpoint.get(module + ".weight_scale", std::array{n, k / kMxfp4Group});
  internal::check_type(codes, "MXFP4", {DType::kU8});
  return {WeightFormat::kMxfp4, n, k, StoredBytes::all_of(codes), StoredBytes::all_of(scale), 1.0f};
}

}  // namespace

Layout layout_of(const Checkpoint& checkpoint, const std::string& module) {
  const Tensor* packed = checkpoint.find(module + ".weight_packed");
  const Tensor* weight = packed != nullptr ? packed : checkpoint.find(module + ".weight");
  const Tensor* scale = checkpoint.find(module + ".weight_scale");
  if (weight == nullptr || weight->dtype != DType::kU8 || scale == nullptr) return Layout::kNone;
  const bool global = checkpoint.find(module + ".weight_scale_2") != nullptr ||
                      checkpoint.find(module + ".weight_global_scale") != nullptr;
  const bool powers_of_two = scale->dtype == DType::kU8 || scale->dtype == DType::kF8E8m0;
  if (powers_of_two && !global) return Layout::kMxfp4;
  return packed != nullptr ? Layout::kNvfp4CompressedTensors : Layout::kNvfp4ModelOpt;
}

StoredMatrix find(const Checkpoint& checkpoint, const std::string& module, int64_t n, int64_t k) {
  const Layout layout = layout_of(checkpoint, module);
  SLUICE_CHECK(layout != Layout::kNone);
  if (layout == Layout::kMxfp4) return find_mxfp4(checkpoint, module, n, k);
  return find_nvfp4(checkpoint, module, n, k, layout == Layout::kNvfp4ModelOpt);
}

}  // namespace sluice::fp4
