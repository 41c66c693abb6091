// Weight rows decoded inside kernels: sixteen values at a time, one NVFP4 scale group.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "base/error.h"
#include "checkpoint/weight_format.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/matrix.h"

namespace sluice::cuda {

constexpr int kChunk = 16;  // values

/// Where the numbers and scales of a matrix lie; what a kernel takes by value. In bf16 a global multiplies
/// finished sums; the other scales multiply sums of sixteen.
struct WeightView {
  const void* data;
  const void* scale;
  float global;
  int64_t k;
  bool bf16 = false;
  bool aligned = false;  // every chunk is whole and begins where its widest load may
  /// Of the scales of chunks, and of finished sums.
  __host__ __device__ float number_factor() const { return bf16 ? 1.0f : global; }
  __host__ __device__ float sum_factor() const { return bf16 ? global : 1.0f; }
};
__host__ __device__ inline bool is_aligned(const void* data, int64_t k) {
  return k % (2 * kChunk) == 0 && reinterpret_cast<uintptr_t>(data) % 16 == 0;
}
inline WeightView view_of(const Matrix& w) {
  return {w.data, w.scale, w.global, w.k, w.compute == Compute::kBf16, is_aligned(w.data, w.k)};
}

__device__ inline float rounded_to_bf16(float value) { return __bfloat162float(__float2bfloat16_rn(value)); }

__device__ inline void round_if(bool bf16, float* values) {
  if (!bf16) return;
#pragma unroll
  for (int i = 0; i < kChunk; ++i) values[i] = rounded_to_bf16(values[i]);
}

/// 16 * kCount bytes of a matrix.
template <int kCount>
struct Words {
  uint32_t words[4 * kCount];
};
template <int kCount>
__device__ Words<kCount> read_words(const WeightView& w, int64_t offset) {
  const auto* from = reinterpret_cast<const uint4*>(static_cast<const std::byte*>(w.data) + offset);
  Words<kCount> read;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const uint4 four = __ldg(from + i);
    read.words[4 * i] = four.x;
    read.words[4 * i + 1] = four.y;
    read.words[4 * i + 2] = four.z;
    read.words[4 * i + 3] = four.w;
  }
  return read;
}

/// Decoders of a format have
///   chunk(w, row, chunk, count, values): numbers [16 * chunk, 16 * chunk + count) of row `row`; the rest of
///     `values` is 0.
///   factor(w, row, chunk): what multiplies the sum of a chunk's products.
///   scale(w, row, chunk): of formats whose scales may go into numbers: what the file says.
///   read(w, row, chunk): the bytes of a chunk, where w.aligned; values(bytes, values) decodes them.
template <WeightFormat>
struct Decoder;

struct NoFactor {
  __device__ static float factor(const WeightView&, int64_t, int64_t) { return 1.0f; }
  __device__ static float scale(const WeightView&, int64_t, int64_t) { return 1.0f; }
};

template <>
struct Decoder<WeightFormat::kF32> : NoFactor {
  using Bytes = Words<4>;
  __device__ static Bytes read(const WeightView& w, int64_t row, int64_t chunk) {
    return read_words<4>(w, (row * w.k + chunk * kChunk) * 4);
  }
  __device__ static void values(const WeightView& w, const Bytes& bytes, float* values) {
#pragma unroll
    for (int i = 0; i < kChunk; ++i) values[i] = __uint_as_float(bytes.words[i]);
    round_if(w.bf16, values);
  }
  __device__ static void chunk(const WeightView& w, int64_t row, int64_t chunk, int count, float* values) {
    const float* from = static_cast<const float*>(w.data) + row * w.k + chunk * kChunk;
#pragma unroll
    for (int i = 0; i < kChunk; ++i) values[i] = i < count ? from[i] : 0.0f;
    round_if(w.bf16, values);
  }
};

// Two bytes a value.
template <class Half>
struct HalvesDecoder : NoFactor {
  using Bytes = Words<2>;
  __device__ static Bytes read(const WeightView& w, int64_t row, int64_t chunk) {
    return read_words<2>(w, (row * w.k + chunk * kChunk) * 2);
  }
  __device__ static void values(const WeightView& w, const Bytes& bytes, float* values) {
    Half halves[kChunk];
    memcpy(halves, bytes.words, sizeof(halves));
#pragma unroll
    for (int i = 0; i < kChunk; ++i) values[i] = static_cast<float>(halves[i]);
    round_if(w.bf16 && !std::is_same_v<Half, __nv_bfloat16>, values);
  }
  __device__ static void chunk(const WeightView& w, int64_t row, int64_t chunk, int count, float* values) {
    const Half* from = static_cast<const Half*>(w.data) + row * w.k + chunk * kChunk;
#pragma unroll
    for (int i = 0; i < kChunk; ++i) values[i] = i < count ? static_cast<float>(from[i]) : 0.0f;
    round_if(w.bf16 && !std::is_same_v<Half, __nv_bfloat16>, values);
  }
};
template <>
struct Decoder<WeightFormat::kBf16> : HalvesDecoder<__nv_bfloat16> {};
template <>
struct Decoder<WeightFormat::kF16> : HalvesDecoder<__half> {};

/// Eight e2m1 codes (sign, two bits of exponent with bias 1, one of mantissa). Their bits are an f16's upper
/// ones, whose value is 2^-14 of theirs, subnormals too.
__device__ inline void decode_e2m1(uint32_t codes, float* values) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const uint32_t two = codes >> (4 * i);  // codes i and i + 4
    const uint32_t halves = (two & 0x00070007u) << 9 | (two & 0x00080008u) << 12;
    __half2 pair;
    memcpy(&pair, &halves, sizeof(pair));
    const float2 read = __half22float2(pair);
    values[i] = read.x;
    values[i + 4] = read.y;
  }
}
constexpr float kE2m1Scale = 0x1p14f;

/// Half a byte a value.
struct Fp4Decoder {
  struct Bytes {
    uint2 codes;
  };
  __device__ static Bytes read(const WeightView& w, int64_t row, int64_t chunk) {
    return {__ldg(static_cast<const uint2*>(w.data) + row * (w.k / kChunk) + chunk)};
  }
  __device__ static void values(const WeightView&, const Bytes& bytes, float* values) {
    decode_e2m1(bytes.codes.x, values);
    decode_e2m1(bytes.codes.y, values + 8);
  }
  __device__ static void chunk(const WeightView& w, int64_t row, int64_t chunk, int, float* out) {
    values(w, read(w, row, chunk), out);
  }
};

__device__ inline float e4m3(uint8_t code) {
  __nv_fp8_e4m3 value;
  value.__x = code;
  return static_cast<float>(value);
}

template <>
struct Decoder<WeightFormat::kNvfp4> : Fp4Decoder {
  __device__ static float scale(const WeightView& w, int64_t row, int64_t chunk) {
    return e4m3(static_cast<const uint8_t*>(w.scale)[row * (w.k / kChunk) + chunk]);
  }
  __device__ static float factor(const WeightView& w, int64_t row, int64_t chunk) {
    return scale(w, row, chunk) * (w.number_factor() * kE2m1Scale);
  }
};

// A byte a value; one scale for the whole piece, since sixteen values never cross a block of 128.
struct Fp8Decoder {
  using Bytes = Words<1>;
  __device__ static Bytes read(const WeightView& w, int64_t row, int64_t chunk) {
    return read_words<1>(w, row * w.k + chunk * kChunk);
  }
  __device__ static void values(const WeightView&, const Bytes& bytes, float* values) {
    uint8_t codes[kChunk];
    memcpy(codes, bytes.words, sizeof(codes));
#pragma unroll
    for (int i = 0; i < kChunk; ++i) values[i] = e4m3(codes[i]);
  }
  __device__ static void chunk(const WeightView& w, int64_t row, int64_t chunk, int count, float* values) {
    const uint8_t* from = static_cast<const uint8_t*>(w.data) + row * w.k + chunk * kChunk;
#pragma unroll
    for (int i = 0; i < kChunk; ++i) values[i] = i < count ? e4m3(from[i]) : 0.0f;
  }
};

template <>
struct Decoder<WeightFormat::kFp8Block> : Fp8Decoder {
  __device__ static float factor(const WeightView& w, int64_t row, int64_t chunk) {
    const int64_t blocks = (w.k + kFp8BlockSize - 1) / kFp8BlockSize;
    return static_cast<const float*>(w.scale)[row / kFp8BlockSize * blocks + chunk * kChunk / kFp8BlockSize];
  }
};

template <>
struct Decoder<WeightFormat::kFp8Row> : Fp8Decoder {
  __device__ static float factor(const WeightView& w, int64_t row, int64_t) {
    return static_cast<const float*>(w.scale)[row];
  }
};

template <>
struct Decoder<WeightFormat::kMxfp4> : Fp4Decoder {
  __device__ static float scale(const WeightView& w, int64_t row, int64_t chunk) {
    const uint8_t code = static_cast<const uint8_t*>(w.scale)[(row * (w.k / kChunk) + chunk) / 2];
    // e8m0: 2^(code - 127); 255 is NaN, 0 is a subnormal.
    return code == 255 ? __uint_as_float(0x7fc00000u)
           : code == 0 ? 0x1p-127f
                       : __uint_as_float(static_cast<uint32_t>(code) << 23);
  }
  __device__ static float factor(const WeightView& w, int64_t row, int64_t chunk) {
    return scale(w, row, chunk) * kE2m1Scale;
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
