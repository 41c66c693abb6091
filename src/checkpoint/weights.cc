// Weight formats by name and size, and the packing of experts into rows.
#include "checkpoint/weights.h"

#include <array>
#include <cstring>

#include "base/error.h"
#include "checkpoint/nvfp4.h"

namespace sluice {
namespace {

constexpr std::array kProjections = {"gate_proj", "up_proj", "down_proj"};
constexpr size_t kPartAlignment = 16;

size_t align(size_t offset) { return (offset + kPartAlignment - 1) / kPartAlignment * kPartAlignment; }

// The tensors by which other formats are known, so that they are refused by name and not as missing.
void refuse_other_formats(const Checkpoint& checkpoint, const std::string& module) {
  constexpr std::array<std::pair<const char*, const char*>, 3> kOthers = {{
      {".qweight", "GPTQ or AWQ"},
      {".weight_packed", "compressed-tensors"},
      {"_blocks", "MXFP4"},
  }};
  for (const auto& [suffix, format] : kOthers) {
    if (checkpoint.find(module + suffix) == nullptr) continue;
    throw Error(ErrorCode::kUnsupported, checkpoint.folder().string() + ": tensor '" + module + suffix +
                                             "' is " + format + ", which is not supported; supported are " +
                                             kSupportedFormats);
  }
}

// NVFP4 keeps its numbers in bytes; without scales nothing says what they mean.
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
      throw Error(ErrorCode::kUnsupported, weight.file + ": tensor '" + weight.name + "' has type " +
                                               std::string(name_of(weight.dtype)) +
                                               ", which is not supported for weights; supported are " +
                                               kSupportedFormats);
  }
}

// Copies `source` to row[offset...] and returns the offset behind it.
size_t append(std::span<std::byte> row, size_t offset, const Tensor* source) {
  if (source == nullptr) return offset;
  SLUICE_CHECK(offset + source->bytes.size() <= row.size());
  std::memcpy(row.data() + offset, source->bytes.data(), source->bytes.size());
  return offset + source->bytes.size();
}

}  // namespace

std::string_view name_of(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
      return "f32";
    case WeightFormat::kF16:
      return "f16";
    case WeightFormat::kBf16:
      return "bf16";
    case WeightFormat::kNvfp4:
      return "nvfp4";
  }
  return "unknown";
}

size_t weight_bytes(WeightFormat format, int64_t n, int64_t k) {
  const auto numbers = static_cast<size_t>(n * k);
  switch (format) {
    case WeightFormat::kF32:
      return numbers * 4;
    case WeightFormat::kF16:
    case WeightFormat::kBf16:
      return numbers * 2;
    case WeightFormat::kNvfp4:
      SLUICE_CHECK(k % nvfp4::kGroup == 0);
      return numbers / 2;
  }
  return 0;
}

size_t scale_bytes(WeightFormat format, int64_t n, int64_t k) {
  if (format != WeightFormat::kNvfp4) return 0;
  SLUICE_CHECK(k % nvfp4::kGroup == 0);
  return static_cast<size_t>(n * (k / nvfp4::kGroup));
}

StoredMatrix find_matrix(const Checkpoint& checkpoint, const std::string& module, int64_t n, int64_t k) {
  check_supported(checkpoint.quantization());
  if (nvfp4::is_stored(checkpoint, module)) return nvfp4::find(checkpoint, module, n, k);
  const Tensor* weight = checkpoint.find(module + ".weight");
  if (weight == nullptr) refuse_other_formats(checkpoint, module);
  if (weight != nullptr && weight->dtype == DType::kU8) refuse_bytes_without_scales(*weight, module);
  StoredMatrix matrix;
  matrix.format = plain_format_of(checkpoint.get(module + ".weight"));
  matrix.weight = &checkpoint.get(module + ".weight", std::array{n, k});
  matrix.n = n;
  matrix.k = k;
  return matrix;
}

std::vector<float> to_f32(const StoredMatrix& matrix) {
  return matrix.format == WeightFormat::kNvfp4 ? nvfp4::to_f32(matrix) : to_f32(*matrix.weight);
}

bool RowLayout::operator==(const RowLayout& other) const {
  // The offsets follow from these three.
  return format == other.format && hidden == other.hidden && intermediate == other.intermediate;
}

RowLayout row_layout(WeightFormat format, int64_t hidden, int64_t intermediate) {
  RowLayout layout;
  layout.format = format;
  layout.hidden = hidden;
  layout.intermediate = intermediate;
  const auto place = [&](size_t bytes) {
    const RowLayout::Part part{layout.row_bytes, bytes};
    layout.row_bytes = align(layout.row_bytes + bytes);
    return part;
  };
  layout.gate_up = place(weight_bytes(format, 2 * intermediate, hidden));
  layout.gate_up_scale = place(scale_bytes(format, 2 * intermediate, hidden));
  layout.down = place(weight_bytes(format, hidden, intermediate));
  layout.down_scale = place(scale_bytes(format, hidden, intermediate));
  return layout;
}

StoredExperts StoredExperts::find(const Checkpoint& checkpoint, const std::string& prefix, int64_t experts,
                                  int64_t hidden, int64_t intermediate) {
  StoredExperts result;
  result.matrices_.reserve(static_cast<size_t>(experts) * kProjections.size());
  for (int64_t expert = 0; expert < experts; ++expert) {
    for (size_t part = 0; part < kProjections.size(); ++part) {
      const std::string module = prefix + "." + std::to_string(expert) + "." + kProjections[part];
      const bool down = part == 2;
      result.matrices_.push_back(
          find_matrix(checkpoint, module, down ? hidden : intermediate, down ? intermediate : hidden));
      const WeightFormat format = result.matrices_.back().format, first = result.matrices_.front().format;
      if (format != first) {
        throw Error(ErrorCode::kUnsupported,
                    checkpoint.folder().string() + ": '" + module + "' is " + std::string(name_of(format)) +
                        ", but the first expert of its layer is " + std::string(name_of(first)) +
                        "; a layer's experts must share a format");
      }
    }
  }
  SLUICE_CHECK(experts >= 1);
  result.layout_ = row_layout(result.matrices_.front().format, hidden, intermediate);
  return result;
}

void StoredExperts::read_row(int64_t expert, std::span<std::byte> row,
                             std::span<float, kScalarsPerExpert> scalars) const {
  SLUICE_CHECK(expert >= 0 && expert < experts());
  SLUICE_CHECK(row.size() == layout_.row_bytes);
  const StoredMatrix* const parts = &matrices_[static_cast<size_t>(expert) * kProjections.size()];
  const StoredMatrix &gate = parts[0], &up = parts[1], &down = parts[2];
  const std::array<size_t, 4> ends = {
      append(row, append(row, layout_.gate_up.offset, gate.weight), up.weight),
      append(row, append(row, layout_.gate_up_scale.offset, gate.scale), up.scale),
      append(row, layout_.down.offset, down.weight),
      append(row, layout_.down_scale.offset, down.scale),
  };
  const std::array<size_t, 4> next = {layout_.gate_up_scale.offset, layout_.down.offset,
                                      layout_.down_scale.offset, layout_.row_bytes};
  for (size_t i = 0; i < next.size(); ++i) std::memset(row.data() + ends[i], 0, next[i] - ends[i]);
  for (size_t i = 0; i < kProjections.size(); ++i) scalars[i] = parts[i].global;
}

}  // namespace sluice
