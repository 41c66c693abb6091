// Tokens that go through the layers together, and what they carry from layer to layer.
#pragma once

#include <cstdint>

#include "device/device.h"
#include "kv/kv_cache.h"

namespace sluice {

/// Who goes through a layer's experts: one batch after the other through all layers; or several batches
/// through each layer (layer-major prefill), which then keep their own routes until the experts have crossed,
/// and their own products where the experts cross in several tiles.
enum class BatchUse { kAlone, kGroup, kGroupInTiles };

/// Device memory of up to max_rows tokens, made once and reused. Batches are windows of it.
struct BatchMemory {
  int64_t max_rows = 0, hidden = 0, half = 0, top_k = 0;  // half: rotary width / 2
  Buffer ids, positions, x, cos, sin;
  Buffer moe_x, expert_ids, expert_weights;  // empty: the model's scratch, good until the next batch
  Buffer outputs;                            // likewise

  /// Throws Error kOutOfMemory.
  BatchMemory(Device& device, BatchUse use, int64_t rows, int64_t hidden, int64_t half, int64_t top_k);
  /// What one token takes.
  static uint64_t bytes_per_token(BatchUse use, int64_t hidden, int64_t half, int64_t top_k);
};

/// Consecutive tokens of one sequence: rows [first_row, first_row + rows) of a memory.
struct Batch {
  const BatchMemory* memory = nullptr;
  int64_t first_row = 0;
  int64_t rows = 0;
  int64_t first_position = 0;
  KvCache* cache = nullptr;

  int32_t* ids() const { return at<int32_t>(memory->ids, 1); }              // [rows]
  int32_t* positions() const { return at<int32_t>(memory->positions, 1); }  // [rows]
  float* x() const { return at<float>(memory->x, memory->hidden); }    // [rows, hidden]: the residual stream
  float* cos() const { return at<float>(memory->cos, memory->half); }  // [rows, rotary width / 2]
  float* sin() const { return at<float>(memory->sin, memory->half); }
  // Null where the memory has none of its own.
  float* moe_x() const { return at<float>(memory->moe_x, memory->hidden); }               // [rows, hidden]
  int32_t* expert_ids() const { return at<int32_t>(memory->expert_ids, memory->top_k); }  // [rows, k]
  float* expert_weights() const { return at<float>(memory->expert_weights, memory->top_k); }  // [rows, k]
  float* outputs() const {
    return at<float>(memory->outputs, memory->top_k * memory->hidden);
  }  // [rows * k, H]

 private:
  template <class T>
  T* at(const Buffer& buffer, int64_t width) const {
    return buffer.data() == nullptr ? nullptr : buffer.as<T>() + first_row * width;
  }
};

}  // namespace sluice
