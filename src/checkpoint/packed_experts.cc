// Cutting packed tensors into the matrices of single experts.
#include "checkpoint/packed_experts.h"

#include <array>

#include "base/error.h"
#include "checkpoint/fp8.h"
#include "checkpoint/stored_checks.h"

namespace sluice::packed_experts {
namespace {

/// How the gate's and the up projection's rows lie in a tensor of both.
enum class Order { kGateFirst, kAlternating };

/// One of `parts` equal parts of expert `expert` in a tensor [experts, rows, ...].
StoredBytes part_of(const Tensor& tensor, int64_t expert, size_t part, size_t parts, Order order) {
  const auto experts = static_cast<size_t>(tensor.shape[0]), rows = static_cast<size_t>(tensor.shape[1]);
  const size_t expert_bytes = tensor.bytes.size() / experts;
  const size_t offset = static_cast<size_t>(expert) * expert_bytes;
  if (order == Order::kAlternating && parts > 1) {
    const size_t row = expert_bytes / rows;
    return {&tensor, offset + part * row, row, parts * row, rows / parts};
  }
  return {&tensor, offset + part * expert_bytes / parts, expert_bytes / parts, 0, 1};
}

/// A tensor of all experts, and what scales it.
struct Packed {
  WeightFormat format = WeightFormat::kBf16;
  const Tensor *weight = nullptr, *scale = nullptr;
  Order order = Order::kGateFirst;
};

WeightFormat plain_format_of(const Tensor& tensor) {
  internal::check_type(tensor, "an expert", {DType::kF32, DType::kF16, DType::kBf16, DType::kF8E4m3});
  if (tensor.dtype == DType::kF32) return WeightFormat::kF32;
  return tensor.dtype == DType::kF16 ? WeightFormat::kF16 : WeightFormat::kBf16;
}

// [experts, n, k] in `name`; `parts` matrices above each other.
Packed find_plain(const Checkpoint& checkpoint, const std::string& name, int64_t experts, int64_t n,
                  int64_t k, int64_t parts) {
  Packed packed;
  packed.weight = &checkpoint.get(name, std::array{experts, n, k});
  packed.format = plain_format_of(*packed.weight);
  if (packed.weight->dtype != DType::kF8E4m3) return packed;
  packed.format = WeightFormat::kFp8Block;
  const auto blocks = [](int64_t size) { return (size + kFp8BlockSize - 1) / kFp8BlockSize; };
  packed.scale = &checkpoint.get(name + "_scale_inv", std::array{experts, blocks(n), blocks(k)});
  internal::check_type(*packed.scale, "FP8", {DType::kF32, DType::kBf16, DType::kF16, DType::kF8E8m0});
  if (parts == 1 || n / parts % kFp8BlockSize == 0) return packed;
  throw Error(ErrorCode::kUnsupported, packed.scale->file + ": tensor '" + packed.scale->name +
                                           "' has blocks that reach from the gate into the up projection (" +
                                           std::to_string(n / parts) + " rows each, no multiple of 128)");
}

Packed find_blocks(const Checkpoint& checkpoint, const std::string& name, int64_t experts, int64_t n,
                   int64_t k) {
  internal::check_columns(checkpoint, name, WeightFormat::kMxfp4, k);
  const int64_t groups = k / kMxfp4Group;
  Packed packed{WeightFormat::kMxfp4, nullptr, nullptr, Order::kAlternating};
  packed.weight = &checkpoint.get(name + "_blocks", std::array{experts, n, groups, kMxfp4Group / 2});
  packed.scale = &checkpoint.get(name + "_scales", std::array{experts, n, groups});
  internal::check_type(*packed.weight, "MXFP4", {DType::kU8});
  internal::check_type(*packed.scale, "MXFP4", {DType::kU8, DType::kF8E8m0});
  return packed;
}

StoredMatrix matrix_of(const Packed& packed, int64_t expert, size_t part, size_t parts, int64_t n,
                       int64_t k) {
  StoredMatrix matrix{packed.format, n, k, part_of(*packed.weight, expert, part, parts, packed.order), {}, 1};
  if (packed.scale != nullptr) matrix.scale = part_of(*packed.scale, expert, part, parts, packed.order);
  return matrix;
}

}  // namespace

bool are_stored(const Checkpoint& checkpoint, const std::string& prefix) {
  return checkpoint.find(prefix + ".gate_up_proj") != nullptr ||
         checkpoint.find(prefix + ".gate_up_proj_blocks") != nullptr;
}

std::vector<StoredMatrix> find(const Checkpoint& checkpoint, const std::string& prefix, int64_t experts,
                               int64_t hidden, int64_t intermediate) {
  check_supported(checkpoint.quantization());
  const std::string both = prefix + ".gate_up_proj", down = prefix + ".down_proj";
  const bool blocks = checkpoint.find(both + "_blocks") != nullptr;
  const Packed gate_up = blocks ? find_blocks(checkpoint, both, experts, 2 * intermediate, hidden)
                                : find_plain(checkpoint, both, experts, 2 * intermediate, hidden, 2);
  const Packed last = blocks ? find_blocks(checkpoint, down, experts, hidden, intermediate)
                             : find_plain(checkpoint, down, experts, hidden, intermediate, 1);
  if (gate_up.format != last.format) {
    throw Error(ErrorCode::kUnsupported, checkpoint.folder().string() + ": '" + down + "' is " +
                                             std::string(name_of(last.format)) + ", but '" + both + "' is " +
                                             std::string(name_of(gate_up.format)) +
                                             "; a layer's experts must share a format");
  }
  std::vector<StoredMatrix> matrices;
  matrices.reserve(static_cast<size_t>(experts) * 3);
  for (int64_t e = 0; e < experts; ++e) {
    matrices.push_back(matrix_of(gate_up, e, 0, 2, intermediate, hidden));
    matrices.push_back(matrix_of(gate_up, e, 1, 2, intermediate, hidden));
    matrices.push_back(matrix_of(last, e, 0, 1, hidden, intermediate));
  }
  return matrices;
}

}  // namespace sluice::packed_experts
