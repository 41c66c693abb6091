// A tensor of a checkpoint: name, type, shape and the bytes of a mapping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

/// Element types of safetensors.
enum class DType {
  kF64,
  kF32,
  kF16,
  kBf16,
  kF8E4m3,
  kF8E5m2,
  kF8E8m0,
  kI64,
  kI32,
  kI16,
  kI8,
  kU64,
  kU32,
  kU16,
  kU8,
  kBool
};

/// Bytes of one element.
size_t size_of(DType type);
/// The name in safetensors headers: "BF16", "F8_E4M3".
std::string_view name_of(DType type);
std::optional<DType> dtype_from_name(std::string_view name);

struct Tensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;        // outermost first; empty for a scalar
  std::span<const std::byte> bytes;  // into the mapping of `file`; need not be aligned
  std::string file;                  // for messages

  int64_t elements() const;
};

/// "[4096, 256]".
std::string format_shape(std::span<const int64_t> shape);

/// All elements as f32, from F32, F16 or BF16. Throws Error kUnsupported (file, tensor and type named) for
/// others.
std::vector<float> to_f32(const Tensor& tensor);

}  // namespace sluice
