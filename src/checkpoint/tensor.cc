// Element types by name and size, and tensors as f32.
#include "checkpoint/tensor.h"

#include <array>
#include <cstring>

#include "base/error.h"
#include "base/scalar.h"

namespace sluice {
namespace {

struct TypeInfo {
  DType type;
  std::string_view name;
  size_t bytes;
};

constexpr std::array kTypes = {
    TypeInfo{DType::kF64, "F64", 8},        TypeInfo{DType::kF32, "F32", 4},
    TypeInfo{DType::kF16, "F16", 2},        TypeInfo{DType::kBf16, "BF16", 2},
    TypeInfo{DType::kF8E4m3, "F8_E4M3", 1}, TypeInfo{DType::kF8E5m2, "F8_E5M2", 1},
    TypeInfo{DType::kF8E8m0, "F8_E8M0", 1}, TypeInfo{DType::kI64, "I64", 8},
    TypeInfo{DType::kI32, "I32", 4},        TypeInfo{DType::kI16, "I16", 2},
    TypeInfo{DType::kI8, "I8", 1},          TypeInfo{DType::kU64, "U64", 8},
    TypeInfo{DType::kU32, "U32", 4},        TypeInfo{DType::kU16, "U16", 2},
    TypeInfo{DType::kU8, "U8", 1},          TypeInfo{DType::kBool, "BOOL", 1},
};

const TypeInfo& info_of(DType type) {
  const TypeInfo& info = kTypes[static_cast<size_t>(type)];
  SLUICE_CHECK(info.type == type);  // the table is in the order of the enumeration
  return info;
}

template <class Code, class Decode>
void decode_all(std::span<const std::byte> bytes, std::vector<float>& values, Decode decode) {
  for (size_t i = 0; i < values.size(); ++i) {
    Code code;  // copied: the mapping need not be aligned
    std::memcpy(&code, bytes.data() + i * sizeof(Code), sizeof(Code));
    values[i] = decode(code);
  }
}

}  // namespace

size_t size_of(DType type) { return info_of(type).bytes; }

std::string_view name_of(DType type) { return info_of(type).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const TypeInfo& info : kTypes) {
    if (info.name == name) return info.type;
  }
  return std::nullopt;
}

int64_t Tensor::elements() const { return static_cast<int64_t>(bytes.size() / size_of(dtype)); }

std::string format_shape(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

std::vector<float> to_f32(const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  switch (tensor.dtype) {
    case DType::kF32:
      decode_all<float>(tensor.bytes, values, [](float value) { return value; });
      break;
    case DType::kF16:
      decode_all<uint16_t>(tensor.bytes, values, f16_to_f32);
      break;
    case DType::kBf16:
      decode_all<uint16_t>(tensor.bytes, values, bf16_to_f32);
      break;
    default:
      throw Error(ErrorCode::kUnsupported, tensor.file + ": tensor '" + tensor.name + "' has type " +
                                               std::string(name_of(tensor.dtype)) +
                                               " where F32, F16 or BF16 is expected");
  }
  return values;
}

}  // namespace sluice
