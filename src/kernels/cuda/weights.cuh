// Weight rows decoded inside kernels: sixteen values at a time, one NVFP4 scale group.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "base/error.h"
#include "checkpoint/weight_format.h"
#include "kernels/matrix.h"

namespace sluice::cuda {

constexpr int kChunk = 16;  // values

/// Where the numbers and scales of a matrix lie; what a kernel takes by value. In bf16 a global multiplies
/// finished sums; the other scales multiply each number, as in f32.
struct WeightView {
  const void* data;
  const void* scale;
  float global;
  int64_t k;
  bool bf16 = false;
  /// Of numbers, and of finished sums.
  __host__ __device__ float number_factor() const { return bf16 ? 1.0f : global; }
  __host__ __device__ float sum_factor() const { return bf16 ? global : 1.0f; }
};
inline WeightView view_of(const Matrix& w) {
  return {w.data, w.scale, w.global, w.k, w.compute == Compute::kBf16};
}

__device__ inline float rounded_to_bf16(float value) { return __bfloat162float(__float2bfloat16_rn(value)); }

template <WeightFormat>
struct Decoder;

template <>
struct Decoder<WeightFormat::kF32> {
  /// Values [16 * chunk, 16 * chunk + count) of row `row`; the rest of `values` is 0.
  __device__ static void chunk(const WeightView& w, int64_t row, int64_t chunk, int count, float* values) {
    const float* from = static_cast<const float*>(w.data) + row * w.k + chunk * kChunk;
#pragma unroll
    for (int i = 0; i < kChunk; ++i) {
      const float value = i < count ? from[i] : 0.0f;
      values[i] = w.bf16 ? rounded_to_bf16(value) : value;
    }
  }
};

// Two bytes a value. Rows are read in 16-byte pieces where they begin at multiples of 16 bytes.
template <class Half>
__device__ void decode_halves(const WeightView& w, int64_t row, int64_t chunk, int count, float* values) {
  const Half* from = static_cast<const Half*>(w.data) + row * w.k + chunk * kChunk;
  if (count == kChunk && reinterpret_cast<uintptr_t>(from) % 16 == 0) {
    union {
      uint4 bytes[2];
      Half halves[kChunk];
    } read;
    read.bytes[0] = reinterpret_cast<const uint4*>(from)[0];
    read.bytes[1] = reinterpret_cast<const uint4*>(from)[1];
#pragma unroll
    for (int i = 0; i < kChunk; ++i) values[i] = static_cast<float>(read.halves[i]);
    return;
  }
#pragma unroll
  for (int i = 0; i < kChunk; ++i) values[i] = i < count ? static_cast<float>(from[i]) : 0.0f;
}

template <>
struct Decoder<WeightFormat::kBf16> {
  __device__ static void chunk(const WeightView& w, int64_t row, int64_t chunk, int count, float* values) {
    decode_halves<__nv_bfloat16>(w, row, chunk, count, values);
  }
};

template <>
struct Decoder<WeightFormat::kF16> {
  __device__ static void chunk(const WeightView& w, int64_t row, int64_t chunk, int count, float* values) {
    decode_halves<__half>(w, row, chunk, count, values);
    if (!w.bf16) return;
#pragma unroll
    for (int i = 0; i < kChunk; ++i) values[i] = rounded_to_bf16(values[i]);
  }
};

/// e2m1: sign, two bits of exponent with bias 1, one of mantissa. As the upper bits of an f32 they give the
/// value times 2^-126, subnormals too.
__device__ inline float e2m1(uint32_t code) {
  return __uint_as_float((code & 7u) << 22 | (code & 8u) << 28) * 0x1p126f;
}

__device__ inline void decode_fp4(uint2 codes, float scale, float* values) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    values[i] = e2m1(codes.x >> (4 * i) & 15u) * scale;
    values[i + 8] = e2m1(codes.y >> (4 * i) & 15u) * scale;
  }
}

__device__ inline float e4m3(uint8_t code) {
  __nv_fp8_e4m3 value;
  value.__x = code;
  return static_cast<float>(value);
}

template <>
struct Decoder<WeightFormat::kNvfp4> {
  __device__ static void chunk(const WeightView& w, int64_t row, int64_t chunk, int, float* values) {
    const int64_t group = row * (w.k / kChunk) + chunk;
    const float scale = e4m3(static_cast<const uint8_t*>(w.scale)[group]) * w.number_factor();
    decode_fp4(static_cast<const uint2*>(w.data)[group], scale, values);
  }
};

// A byte a value; one scale for the whole piece, since sixteen values never cross a block of 128.
__device__ inline void decode_fp8(const WeightView& w, int64_t row, int64_t chunk, int count, float scale,
                                  float* values) {
  const uint8_t* from = static_cast<const uint8_t*>(w.data) + row * w.k + chunk * kChunk;
  if (count == kChunk && reinterpret_cast<uintptr_t>(from) % 16 == 0) {
    union {
      uint4 bytes;
      uint8_t codes[kChunk];
    } read;
    read.bytes = *reinterpret_cast<const uint4*>(from);
#pragma unroll
    for (int i = 0; i < kChunk; ++i) values[i] = e4m3(read.codes[i]) * scale;
    return;
  }
#pragma unroll
  for (int i = 0; i < kChunk; ++i) values[i] = i < count ? e4m3(from[i]) * scale : 0.0f;
}

template <>
struct Decoder<WeightFormat::kFp8Block> {
  __device__ static void chunk(const WeightView& w, int64_t row, int64_t chunk, int count, float* values) {
    const int64_t blocks = (w.k + kFp8BlockSize - 1) / kFp8BlockSize;
    const int64_t at = row / kFp8BlockSize * blocks + chunk * kChunk / kFp8BlockSize;
    decode_fp8(w, row, chunk, count, static_cast<const float*>(w.scale)[at], values);
  }
};

template <>
struct Decoder<WeightFormat::kFp8Row> {
  __device__ static void chunk(const WeightView& w, int64_t row, int64_t chunk, int count, float* values) {
    decode_fp8(w, row, chunk, count, static_cast<const float*>(w.scale)[row], values);
  }
};

template <>
struct Decoder<WeightFormat::kMxfp4> {
  __device__ static void chunk(const WeightView& w, int64_t row, int64_t chunk, int, float* values) {
    const int64_t piece = row * (w.k / kChunk) + chunk;
    const uint8_t code = static_cast<const uint8_t*>(w.scale)[piece / 2];
    // e8m0: 2^(code - 127); 255 is NaN, 0 is a subnormal.
    const float scale = code == 255 ? __uint_as_float(0x7fc00000u)
                        : code == 0 ? 0x1p-127f
                                    : __uint_as_float(code << 23);
    decode_fp4(static_cast<const uint2*>(w.data)[piece], scale, values);
  }
};

/// Calls body(Decoder<format>()) for the format that is known at run time.
template <class Body>
void with_decoder(WeightFormat format, Body&& body) {
  switch (format) {
    case WeightFormat::kF32:
      return body(Decoder<WeightFormat::kF32>());
    case WeightFormat::kF16:
      return body(Decoder<WeightFormat::kF16>());
    case WeightFormat::kBf16:
      return body(Decoder<WeightFormat::kBf16>());
    case WeightFormat::kFp8Block:
      return body(Decoder<WeightFormat::kFp8Block>());
    case WeightFormat::kFp8Row:
      return body(Decoder<WeightFormat::kFp8Row>());
    case WeightFormat::kNvfp4:
      return body(Decoder<WeightFormat::kNvfp4>());
    case WeightFormat::kMxfp4:
      return body(Decoder<WeightFormat::kMxfp4>());
  }
  SLUICE_CHECK_MSG(false, "no such format");
}

}  // namespace sluice::cuda
