// Small vector operations of the host kernels, chosen once for this processor.
#pragma once

#include <cstdint>

namespace sluice {

/// The order of each sum depends on n alone.
struct VectorOps {
  float (*dot)(const float* a, const float* b, int64_t n);
  void (*add_scaled)(float* y, const float* x, float factor, int64_t n);  // y += factor * x
  // The same with one operand in bf16.
  float (*dot_bf16)(const float* a, const uint16_t* b, int64_t n);
  void (*add_scaled_bf16)(float* y, const uint16_t* x, float factor, int64_t n);
};

const VectorOps& vector_ops();

}  // namespace sluice
