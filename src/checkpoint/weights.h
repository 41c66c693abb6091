// Weights as the checkpoint stores them: which format a projection has, and one packed row for each expert.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace sluice {

/// How the numbers of a weight matrix [n, k] are stored.
/// kNvfp4: u8 [n, k/2] e2m1 codes, low nibble = even column; e4m3 scale a group of 16 columns [n, k/16]; one
/// f32 global.
enum class WeightFormat { kF32, kF16, kBf16, kNvfp4 };
std::string_view name_of(WeightFormat format);
/// Bytes of the numbers of [n, k] without scales; k must suit the format (a multiple of 16 for kNvfp4).
size_t weight_bytes(WeightFormat format, int64_t n, int64_t k);
/// Bytes of the scales of [n, k]; 0 where the format has none.
size_t scale_bytes(WeightFormat format, int64_t n, int64_t k);

/// A matrix [n, k] in the checkpoint, by the name of its module ("model.layers.0.self_attn.q_proj").
struct StoredMatrix {
  WeightFormat format = WeightFormat::kBf16;
  int64_t n = 0, k = 0;
  const Tensor* weight = nullptr;
  const Tensor* scale = nullptr;  // null where the format has none
  float global = 1.0f;            // value = code * scale * global
};
/// Finds `module` + ".weight" and its scales, checks types and shapes. Throws Error kNotFound, kBadFile or
/// kUnsupported.
StoredMatrix find_matrix(const Checkpoint& checkpoint, const std::string& module, int64_t n, int64_t k);
/// The matrix as f32 [n, k], for small ones and for tests.
std::vector<float> to_f32(const StoredMatrix& matrix);

/// Where the parts of an expert lie in its packed row; all offsets are multiples of 16 (design: one row an
/// expert). gate_up is [2 * intermediate, hidden]: the gate's rows, then the up projection's; down is
/// [hidden, intermediate]. Per-expert scalars (three NVFP4 globals: gate, up, down) are kept beside the rows,
/// not in them.
struct RowLayout {
  struct Part {
    size_t offset = 0, bytes = 0;
  };
  WeightFormat format = WeightFormat::kBf16;
  int64_t hidden = 0, intermediate = 0;
  Part gate_up, gate_up_scale, down, down_scale;
  size_t row_bytes = 0;
  bool operator==(const RowLayout&) const;
};
RowLayout row_layout(WeightFormat format, int64_t hidden, int64_t intermediate);

inline constexpr int kScalarsPerExpert = 3;  // globals of gate, up and down; 1 where the format has none

/// The routed experts of one layer in a checkpoint with one module an expert: `prefix`.E.{gate,up,down}_proj.
class StoredExperts {
 public:
  /// Finds and checks every tensor of the `experts` experts; no weights are read. Throws as find_matrix.
  static StoredExperts find(const Checkpoint& checkpoint, const std::string& prefix, int64_t experts,
                            int64_t hidden, int64_t intermediate);
  const RowLayout& layout() const { return layout_; }
  int64_t experts() const { return static_cast<int64_t>(matrices_.size()) / 3; }
  /// Packs expert `expert` into `row` (layout().row_bytes; padding is zeroed) and its globals into `scalars`.
  void read_row(int64_t expert, std::span<std::byte> row, std::span<float, kScalarsPerExpert> scalars) const;

 private:
  RowLayout layout_;
  std::vector<StoredMatrix> matrices_;  // gate, up, down of each expert
};

}  // namespace sluice
