// Types, sizes and scales, refused with the tensor's name.
#include "checkpoint/stored_checks.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace sluice::internal {
namespace {

[[noreturn]] void refuse(const Tensor& tensor, const std::string& what) {
  throw Error(ErrorCode::kBadFile, tensor.file + ": tensor '" + tensor.name + "' " + what);
}

}  // namespace

void check_type(const Tensor& tensor, std::string_view format, std::initializer_list<DType> expected) {
  if (std::find(expected.begin(), expected.end(), tensor.dtype) != expected.end()) return;
  std::string names;
  for (const DType type : expected) names += (names.empty() ? "" : " or ") + std::string(name_of(type));
  refuse(tensor,
         "has type " + std::string(name_of(tensor.dtype)) + ", " + std::string(format) + " needs " + names);
}

void check_columns(const Checkpoint& checkpoint, const std::string& module, WeightFormat format, int64_t k) {
  const int64_t multiple = column_multiple(format);
  if (k % multiple == 0) return;
  throw Error(ErrorCode::kUnsupported, checkpoint.folder().string() + ": '" + module + "' has " +
                                           std::to_string(k) + " columns, " + std::string(name_of(format)) +
                                           " needs a multiple of " + std::to_string(multiple));
}

void check_scale(const Tensor& tensor, float value) {
  if (std::isfinite(value) && value >= 0) return;
  refuse(tensor, "holds " + std::to_string(value) + "; a scale must be finite and not negative");
}

float read_scalar_scale(const Tensor& tensor, std::string_view format) {
  check_type(tensor, format, {DType::kF32});
  if (tensor.elements() != 1) {
    refuse(tensor,
           "has shape " + format_shape(tensor.shape) + ", " + std::string(format) + " needs one number");
  }
  float value = 0;
  std::memcpy(&value, tensor.bytes.data(), sizeof value);
  check_scale(tensor, value);
  return value;
}

}  // namespace sluice::internal
