// The routed experts of a layer: one packed row for each expert.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/stored_matrix.h"

namespace sluice {

/// Where the parts of an expert lie in its packed row; all offsets are multiples of 16 (design: one row an
/// expert). gate_up is [2 * intermediate, hidden]: the gate's rows, then the up projection's; its scales are
/// the gate's, then the up projection's; down is [hidden, intermediate]. Per-expert scalars (three NVFP4
/// globals: gate, up, down) are kept beside the rows, not in them.
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

/// What a family calls an expert's gate, up and down projections.
using ProjectionNames = std::array<const char*, 3>;
inline constexpr ProjectionNames kProjectionNames = {"gate_proj", "up_proj", "down_proj"};

/// The routed experts of one layer in a checkpoint: one module a projection, `prefix`.E.{gate,up,down}_proj,
/// or all experts in one tensor (checkpoint/packed_experts.h).
class StoredExperts {
 public:
  /// Finds and checks every tensor of the `experts` experts; no weights are read. Throws as find_matrix, and
  /// kUnsupported if they differ in format.
  static StoredExperts find(const Checkpoint& checkpoint, const std::string& prefix, int64_t experts,
                            int64_t hidden, int64_t intermediate,
                            const ProjectionNames& names = kProjectionNames);
  const RowLayout& layout() const { return layout_; }
  int64_t experts() const { return static_cast<int64_t>(matrices_.size()) / 3; }
  /// Packs expert `expert` into `row` (layout().row_bytes; padding is zeroed) and its globals into `scalars`.
  /// Throws as read_scale.
  void read_row(int64_t expert, std::span<std::byte> row, std::span<float, kScalarsPerExpert> scalars) const;

 private:
  RowLayout layout_;
  std::vector<StoredMatrix> matrices_;  // gate, up, down of each expert
};

}  // namespace sluice
