// Choosing the reader of a module's format, and refusing what none of them reads.
#include "checkpoint/stored_matrix.h"

#include <array>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "checkpoint/fp4.h"
#include "checkpoint/fp8.h"

namespace sluice {
namespace {

[[noreturn]] void refuse(const std::string& file, const std::string& tensor, const std::string& what) {
  throw Error(ErrorCode::kUnsupported, file + ": tensor '" + tensor + "' " + what +
                                           ", which is not supported; supported are " + kSupportedFormats);
}

// The tensors by which other formats are known, so that they are refused by name and not as missing.
void refuse_other_formats(const Checkpoint& checkpoint, const std::string& module) {
  constexpr std::array<std::pair<const char*, const char*>, 5> kOthers = {{
      {".qweight", "is GPTQ or AWQ"},
      {".weight_packed", "is packed by compressed-tensors in integers (int4 pack-quantized)"},
      {".weight.absmax", "is of bitsandbytes"},
      {".SCB", "is of bitsandbytes"},
      {".pre_quant_scale", "scales activations before the product (AWQ)"},
  }};
  for (const auto& [suffix, format] : kOthers) {
    if (const Tensor* other = checkpoint.find(module + suffix)) refuse(other->file, other->name, format);
  }
}

// NVFP4 and MXFP4 keep their numbers in bytes; without scales nothing says what they mean.
[[noreturn]] void refuse_bytes_without_scales(const Tensor& weight, const std::string& module) {
  throw Error(ErrorCode::kNotFound,
              weight.file + ": tensor '" + weight.name + "' has type U8, as NVFP4 stores weights, but '" +
                  module + ".weight_scale' is missing: download the model again. Supported are " +
                  kSupportedFormats);
}

WeightFormat plain_format_of(const Tensor& weight) {
  switch (weight.dtype) {
    case DType::kF32:
      return WeightFormat::kF32;
    case DType::kF16:
      return WeightFormat::kF16;
    case DType::kBf16:
      return WeightFormat::kBf16;
    default:
      refuse(weight.file, weight.name, "has type " + std::string(name_of(weight.dtype)));
  }
}

bool is_fp8(WeightFormat format) {
  return format == WeightFormat::kFp8Block || format == WeightFormat::kFp8Row;
}

void copy(const StoredBytes& stored, std::span<std::byte> out) {
  SLUICE_CHECK(out.size() == stored.bytes());
  for (size_t i = 0; i < stored.pieces; ++i) {
    std::memcpy(out.data() + i * stored.piece_bytes,
                stored.tensor->bytes.data() + stored.offset + i * stored.stride, stored.piece_bytes);
  }
}

}  // namespace

StoredMatrix find_matrix(const Checkpoint& checkpoint, const std::string& module, int64_t n, int64_t k) {
  check_supported(checkpoint.quantization());
  const Tensor* packed = checkpoint.find(module + ".weight_packed");
  const bool bytes = packed == nullptr || packed->dtype == DType::kU8;
  if (bytes && checkpoint.find(module + ".pre_quant_scale") == nullptr) {
    if (fp4::layout_of(checkpoint, module) != fp4::Layout::kNone) {
      return fp4::find(checkpoint, module, n, k);
    }
    if (packed != nullptr) refuse_bytes_without_scales(*packed, module);
  }
  refuse_other_formats(checkpoint, module);
  if (fp8::is_stored(checkpoint, module)) return fp8::find(checkpoint, module, n, k);
  const Tensor* weight = checkpoint.find(module + ".weight");
  if (weight != nullptr && weight->dtype == DType::kU8) refuse_bytes_without_scales(*weight, module);
  StoredMatrix matrix;
  matrix.format = plain_format_of(checkpoint.get(module + ".weight"));
  matrix.weight = StoredBytes::all_of(checkpoint.get(module + ".weight", std::array{n, k}));
  matrix.n = n;
  matrix.k = k;
  return matrix;
}

void read_weight(const StoredMatrix& matrix, std::span<std::byte> out) { copy(matrix.weight, out); }

void read_scale(const StoredMatrix& matrix, std::span<std::byte> out) {
  SLUICE_CHECK(out.size() == scale_bytes(matrix.format, matrix.n, matrix.k));
  if (out.empty()) return;
  if (!is_fp8(matrix.format)) return copy(matrix.scale, out);
  std::vector<float> scales(out.size() / sizeof(float));
  fp8::read_scales(matrix.scale, scales);
  std::memcpy(out.data(), scales.data(), out.size());
}

std::vector<float> to_f32(const StoredMatrix& matrix) {
  std::vector<std::byte> data(weight_bytes(matrix.format, matrix.n, matrix.k));
  std::vector<std::byte> scale(scale_bytes(matrix.format, matrix.n, matrix.k));
  read_weight(matrix, data);
  read_scale(matrix, scale);
  const EncodedMatrix encoded{matrix.format, matrix.n, matrix.k, data.data(), scale.data(), matrix.global};
  std::vector<float> values(static_cast<size_t>(matrix.n * matrix.k));
  for (int64_t row = 0; row < matrix.n; ++row) decode_row(encoded, row, values.data() + row * matrix.k);
  return values;
}

}  // namespace sluice
