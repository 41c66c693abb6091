// The audit on the host backend.
#include "experts/audit.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/counted.h"
#include "experts/cuda/expert_ops.h"

namespace sluice {
namespace {

void note(AuditResult& result, int32_t slot, int32_t id) {
  if (result.violations < static_cast<int64_t>(result.slots.size())) {
    result.slots[static_cast<size_t>(result.violations)] = slot;
    result.ids[static_cast<size_t>(result.violations)] = id;
  }
  ++result.violations;
}

void read_writers(const SlotLog& log, int32_t slots, AuditResult& result) {
  const auto most = static_cast<int64_t>(result.slots.size());
  for (int64_t i = 0; i < std::min(result.violations, most); ++i) {
    const int32_t slot = result.slots[static_cast<size_t>(i)];
    if (slot >= 0 && slot < slots) result.writers[static_cast<size_t>(i)] = log.histories()[slot];
  }
}

// ", last written by miss #12 (MoE layer 3, expert 7), prediction #9 (...)"
std::string describe(const SlotHistory& history, const ExpertPool& pool) {
  const int32_t experts = pool.map.shape().experts;
  std::string text;
  for (const SlotWriteRecord& write : history) {
    if (write.cause == SlotWrite::kNone) break;
    text += text.empty() ? ", last written by " : ", ";
    text += std::string(name_of(write.cause)) + " #" + std::to_string(write.sequence);
    if (write.id < 0) continue;
    const auto layer = static_cast<size_t>(write.id / experts);
    text += " (MoE layer " + (layer < pool.layers.size() ? std::to_string(pool.layers[layer]) : "?") +
            ", expert " + std::to_string(write.id % experts) + ")";
  }
  return text;
}

}  // namespace

void audit(Stream& stream, const ExpertState& state, const ExpertPool& pool, AuditResult* result) {
  std::vector<const LayerRows*> rows;
  for (const int32_t layer : pool.layers) rows.push_back(state.layers[static_cast<size_t>(layer)].rows);
  const SlotMapView map = pool.map.view();
  const std::byte* bytes = pool.slot(0);
  const size_t row_bytes = pool.layout.row_bytes;
  const SlotLog* log = pool.log.get();
  const auto ranges = [=](RangeSink& sink) {
    sink.reads(map.range());
    if (log != nullptr) sink.reads(log->range());
    sink.reads({bytes, static_cast<size_t>(map.header->slots) * row_bytes});
    for (const LayerRows* layer : rows) sink.reads({layer->rows.data(), layer->rows.bytes()});
  };
  const std::byte* const* bases = pool.bases.as<const std::byte*>();
  const SlotHistory* histories = log == nullptr ? nullptr : log->histories();
  stream.launch_both(
      {.name = "audit", .writes = {range_of(result, 1)}}, ranges,
      [=](const HostContext&) {
        *result = {};
        const int32_t ids = map.shape.layers * map.shape.experts;
        for (int32_t slot = 0; slot < map.header->slots; ++slot) {
          const int32_t owner = map.owner_of[slot];
          if (owner < 0) continue;
          ++result->slots_checked;
          if (owner >= ids || map.slot_of[owner] != slot) {
            note(*result, slot, owner);
            continue;
          }
          const LayerRows& layer = *rows[static_cast<size_t>(owner / map.shape.experts)];
          if (std::memcmp(bytes + static_cast<size_t>(slot) * row_bytes,
                          layer.row(ExpertId(owner % map.shape.experts)), row_bytes) != 0) {
            note(*result, slot, owner);
          }
        }
        // What a hit would read: an expert that is mapped to a slot of somebody else.
        for (int32_t id = 0; id < ids; ++id) {
          const int32_t slot = map.slot_of[id];
          if (slot == -1) continue;
          if (slot < 0 || slot >= map.header->slots || map.owner_of[slot] != id) note(*result, slot, id);
        }
        if (log != nullptr) read_writers(*log, map.header->slots, *result);
      },
      SLUICE_CUDA_OP(cuda::audit, map, bytes, row_bytes, bases, histories, result));
}

std::string describe(const AuditResult& result, const ExpertPool& pool) {
  std::string text = "audit: " + counted(result.violations, "violation") + " in " +
                     counted(result.slots_checked, "held slot") +
                     "; a slot does not hold its expert's bytes, or the maps disagree:";
  const int32_t experts = pool.map.shape().experts;
  const auto most = static_cast<int64_t>(result.slots.size());
  for (int64_t i = 0; i < std::min(result.violations, most); ++i) {
    const int32_t id = result.ids[static_cast<size_t>(i)];
    const auto layer = static_cast<size_t>(id / experts);
    text += " slot " + std::to_string(result.slots[static_cast<size_t>(i)]);
    if (layer >= pool.layers.size()) {
      text += " (owner " + std::to_string(id) + ", which is no expert)";
    } else {
      text += " (MoE layer " + std::to_string(pool.layers[layer]) + ", expert " +
              std::to_string(id % experts) + ")";
    }
    text += describe(result.writers[static_cast<size_t>(i)], pool);
  }
  return text;
}

}  // namespace sluice
