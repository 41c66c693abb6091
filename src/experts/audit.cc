// The audit on the host backend.
#include "experts/audit.h"

#include <cstring>
#include <vector>

namespace sluice {

void audit(Stream& stream, const ExpertState& state, const ExpertPool& pool, AuditResult* result) {
  std::vector<const LayerRows*> rows;
  for (const int32_t layer : pool.layers) rows.push_back(state.layers[static_cast<size_t>(layer)].rows);
  const SlotMapView map = pool.map.view();
  const std::byte* bytes = pool.slot(0);
  const size_t row_bytes = pool.layout.row_bytes;
  const auto ranges = [=](RangeSink& sink) {
    sink.reads(map.range());
    sink.reads({bytes, static_cast<size_t>(map.header->slots) * row_bytes});
    for (const LayerRows* layer : rows) sink.reads({layer->rows.data(), layer->rows.bytes()});
  };
  stream.launch({.name = "audit", .writes = {range_of(result, 1)}}, ranges, [=](const HostContext&) {
    *result = {};
    for (int32_t slot = 0; slot < map.header->slots; ++slot) {
      const int32_t owner = map.owner_of[slot];
      if (owner < 0) continue;
      ++result->slots_checked;
      const LayerRows& layer = *rows[static_cast<size_t>(owner / map.shape.experts)];
      const bool mapped = map.slot_of[owner] == slot;
      if (mapped && std::memcmp(bytes + static_cast<size_t>(slot) * row_bytes,
                                layer.row(ExpertId(owner % map.shape.experts)), row_bytes) == 0) {
        continue;
      }
      if (result->violations < static_cast<int64_t>(result->slots.size())) {
        result->slots[static_cast<size_t>(result->violations)] = slot;
      }
      ++result->violations;
    }
  });
}

std::string describe(const AuditResult& result, const ExpertPool& pool) {
  std::string text = "audit: " + std::to_string(result.violations) + " of " +
                     std::to_string(result.slots_checked) + " held slots do not hold their expert's bytes:";
  const SlotMapView& map = pool.map.view();
  for (int64_t i = 0; i < std::min<int64_t>(result.violations, static_cast<int64_t>(result.slots.size()));
       ++i) {
    const int32_t slot = result.slots[static_cast<size_t>(i)];
    const int32_t owner = map.owner_of[slot];
    text += " slot " + std::to_string(slot) + " (MoE layer " +
            std::to_string(pool.layers[static_cast<size_t>(owner / map.shape.experts)]) + ", expert " +
            std::to_string(owner % map.shape.experts) + ")";
  }
  return text;
}

}  // namespace sluice
