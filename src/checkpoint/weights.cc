// The packing of experts into rows.
#include "checkpoint/weights.h"

#include <cstring>

#include "base/error.h"
#include "checkpoint/packed_experts.h"

namespace sluice {
namespace {

constexpr size_t kPartAlignment = 16;

size_t align(size_t offset) { return (offset + kPartAlignment - 1) / kPartAlignment * kPartAlignment; }

std::vector<StoredMatrix> find_one_by_one(const Checkpoint& checkpoint, const std::string& prefix,
                                          int64_t experts, int64_t hidden, int64_t intermediate,
                                          const ProjectionNames& names) {
  std::vector<StoredMatrix> matrices;
  matrices.reserve(static_cast<size_t>(experts) * names.size());
  for (int64_t expert = 0; expert < experts; ++expert) {
    for (size_t part = 0; part < names.size(); ++part) {
      const std::string module = prefix + "." + std::to_string(expert) + "." + names[part];
      const bool down = part == 2;
      matrices.push_back(
          find_matrix(checkpoint, module, down ? hidden : intermediate, down ? intermediate : hidden));
      const WeightFormat format = matrices.back().format, first = matrices.front().format;
      if (format == first) continue;
      throw Error(ErrorCode::kUnsupported,
                  checkpoint.folder().string() + ": '" + module + "' is " + std::string(name_of(format)) +
                      ", but the first expert of its layer is " + std::string(name_of(first)) +
                      "; a layer's experts must share a format");
    }
  }
  return matrices;
}

}  // namespace

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
  // Twice those of [intermediate, hidden]: a block of scales must not reach from the gate into the up
  // projection.
  layout.gate_up = place(2 * weight_bytes(format, intermediate, hidden));
  layout.gate_up_scale = place(2 * scale_bytes(format, intermediate, hidden));
  layout.down = place(weight_bytes(format, hidden, intermediate));
  layout.down_scale = place(scale_bytes(format, hidden, intermediate));
  return layout;
}

StoredExperts StoredExperts::find(const Checkpoint& checkpoint, const std::string& prefix, int64_t experts,
                                  int64_t hidden, int64_t intermediate, const ProjectionNames& names) {
  SLUICE_CHECK(experts >= 1);
  StoredExperts result;
  result.matrices_ = packed_experts::are_stored(checkpoint, prefix)
                         ? packed_experts::find(checkpoint, prefix, experts, hidden, intermediate)
                         : find_one_by_one(checkpoint, prefix, experts, hidden, intermediate, names);
  result.layout_ = row_layout(result.matrices_.front().format, hidden, intermediate);
  return result;
}

void StoredExperts::read_row(int64_t expert, std::span<std::byte> row,
                             std::span<float, kScalarsPerExpert> scalars) const {
  SLUICE_CHECK(expert >= 0 && expert < experts());
  SLUICE_CHECK(row.size() == layout_.row_bytes);
  const StoredMatrix* const parts = &matrices_[static_cast<size_t>(expert) * kScalarsPerExpert];
  const StoredMatrix &gate = parts[0], &up = parts[1], &down = parts[2];
  const RowLayout& l = layout_;
  const auto half = [&](const RowLayout::Part& part, size_t which) {
    return row.subspan(part.offset + which * part.bytes / 2, part.bytes / 2);
  };
  read_weight(gate, half(l.gate_up, 0));
  read_weight(up, half(l.gate_up, 1));
  read_scale(gate, half(l.gate_up_scale, 0));
  read_scale(up, half(l.gate_up_scale, 1));
  read_weight(down, row.subspan(l.down.offset, l.down.bytes));
  read_scale(down, row.subspan(l.down_scale.offset, l.down_scale.bytes));
  for (const RowLayout::Part& part : {l.gate_up, l.gate_up_scale, l.down, l.down_scale}) {
    const size_t end = part.offset + part.bytes;
    std::memset(row.data() + end, 0, align(end) - end);
  }
  for (size_t i = 0; i < kScalarsPerExpert; ++i) scalars[i] = parts[i].global;
}

}  // namespace sluice
