// Tokens that go through the layers together, and what they carry from layer to layer.
#pragma once

#include <cstdint>
#include <vector>

#include "device/device.h"
#include "kv/kv_cache.h"

namespace sluice {

/// Consecutive tokens of one sequence. The device buffers are made once; set() reuses them.
struct Batch {
  Buffer ids_buffer, x_buffer, cos_buffer, sin_buffer;
  int64_t max_rows = 0;
  int64_t rows = 0;
  int64_t first_position = 0;
  KvCache* cache = nullptr;

  int32_t* ids() const { return ids_buffer.as<int32_t>(); }  // [rows]
  float* x() const { return x_buffer.as<float>(); }          // [rows, hidden]: the residual stream
  float* cos() const { return cos_buffer.as<float>(); }      // [rows, rotary width / 2]
  float* sin() const { return sin_buffer.as<float>(); }

  /// Bytes of a batch of `rows` tokens.
  static size_t bytes(int64_t rows, int64_t hidden, int64_t half) {
    return static_cast<size_t>(rows) *
           (sizeof(int32_t) + sizeof(float) * static_cast<size_t>(hidden + 2 * half));
  }
};

}  // namespace sluice
