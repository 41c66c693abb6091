// Fills host rows from a checkpoint.
#include "experts/host_rows.h"

namespace sluice {

LayerRows read_layer_rows(const StoredExperts& stored, Device& device, ThreadPool& pool,
                          const std::function<void(size_t)>& progress) {
  LayerRows layer;
  layer.layout = stored.layout();
  layer.experts = stored.experts();
  const size_t row_bytes = layer.layout.row_bytes;
  layer.rows =
      device.allocate(static_cast<size_t>(layer.experts) * row_bytes, "expert rows", MemoryKind::kPinned);
  layer.scalars.resize(static_cast<size_t>(layer.experts) * kScalarsPerExpert);
  pool.parallel_for(layer.experts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t e = begin; e < end; ++e) {
      const std::span<std::byte> row(layer.rows.as<std::byte>() + static_cast<size_t>(e) * row_bytes,
                                     row_bytes);
      stored.read_row(e, row,
                      std::span<float, kScalarsPerExpert>(
                          &layer.scalars[static_cast<size_t>(e) * kScalarsPerExpert], kScalarsPerExpert));
      if (progress) progress(row_bytes);
    }
  });
  return layer;
}

}  // namespace sluice
