// What the readers of stored formats check on tensors.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint.h"
#include "checkpoint/weight_format.h"

namespace sluice::internal {

/// Throws Error kBadFile unless the tensor has one of `expected` types; `format` is for the message.
void check_type(const Tensor& tensor, std::string_view format, std::initializer_list<DType> expected);
/// Throws Error kUnsupported where k is no multiple of what the format needs.
void check_columns(const Checkpoint& checkpoint, const std::string& module, WeightFormat format, int64_t k);
/// Throws Error kBadFile, with the tensor, for a scale that is negative or not finite.
void check_scale(const Tensor& tensor, float value);
/// The one number of an F32 tensor, a scale. Throws Error kBadFile.
float read_scalar_scale(const Tensor& tensor, std::string_view format);

}  // namespace sluice::internal
