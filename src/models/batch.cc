// The memory of batches.
#include "models/batch.h"

namespace sluice {

BatchMemory::BatchMemory(Device& device, BatchUse use, int64_t rows, int64_t hidden_in, int64_t half_in,
                         int64_t top_k_in)
    : max_rows(rows), hidden(hidden_in), half(half_in), top_k(top_k_in) {
  const auto floats = [&](int64_t width) { return device.allocate_array<float>(rows * width, "batch"); };
  ids = device.allocate_array<int32_t>(rows, "batch");
  positions = device.allocate_array<int32_t>(rows, "batch");
  x = floats(hidden);
  cos = floats(half);
  sin = floats(half);
  if (use == BatchUse::kAlone) return;
  moe_x = floats(hidden);
  expert_ids = device.allocate_array<int32_t>(rows * top_k, "batch");
  expert_weights = floats(top_k);
  if (use == BatchUse::kGroupInTiles) outputs = floats(top_k * hidden);
}

uint64_t BatchMemory::bytes_per_token(BatchUse use, int64_t hidden, int64_t half, int64_t top_k) {
  int64_t words = 2 + hidden + 2 * half;
  if (use != BatchUse::kAlone) words += hidden + 2 * top_k;
  if (use == BatchUse::kGroupInTiles) words += top_k * hidden;
  return static_cast<uint64_t>(words) * sizeof(float);
}

}  // namespace sluice
