// All routed experts in host memory: for each layer one packed row an expert.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "base/units.h"
#include "checkpoint/weights.h"
#include "device/device.h"

namespace sluice {

/// The rows of one MoE layer: [experts, layout.row_bytes], and the scalars that stay beside them.
struct LayerRows {
  RowLayout layout;
  int64_t experts = 0;
  Buffer rows;
  std::vector<float> scalars;  // [experts, kScalarsPerExpert]

  const std::byte* row(ExpertId expert) const {
    return rows.as<std::byte>() + static_cast<size_t>(expert.value) * layout.row_bytes;
  }
  size_t bytes() const { return rows.bytes(); }
};

/// Packs every expert of `stored` into host memory, in parallel. `progress` is called with the bytes of each
/// finished row, from any thread. Throws Error kOutOfMemory.
LayerRows read_layer_rows(const StoredExperts& stored, Device& device, ThreadPool& pool,
                          const std::function<void(size_t)>& progress);

}  // namespace sluice
