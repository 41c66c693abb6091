// Scalar codecs of the checkpoint formats: the only copy in the project.
//
// bf16: upper half of an f32. f16: IEEE half. e4m3: OCP FP8 E4M3FN (no infinity, 0x7f and 0xff are NaN, max
// 448). e8m0: 2^(code - 127), 255 is NaN. e2m1: magnitudes 0 .5 1 1.5 2 3 4 6, bit 3 is the sign; code 8
// decodes to -0. Rounding is to nearest, ties to even, everywhere.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace sluice {

constexpr float bf16_to_f32(uint16_t code) { return std::bit_cast<float>(static_cast<uint32_t>(code) << 16); }

constexpr uint16_t f32_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);  // quiet NaN
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

constexpr float f16_to_f32(uint16_t code) {
  const uint32_t sign = static_cast<uint32_t>(code & 0x8000u) << 16;
  const uint32_t exponent = (code >> 10) & 0x1fu;
  const uint32_t mantissa = code & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}

/// Values beyond 65504 become infinity, as the hardware's conversion does.
constexpr uint16_t f32_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 65520 and more
  if (magnitude < 0x38800000u) {  // below 2^-14: subnormal steps of 2^-24
    // Adding 0.5 puts the wanted bits at the end of the mantissa, rounded by the addition itself.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

constexpr float e8m0_to_f32(uint8_t code) {
  if (code == 255) return std::bit_cast<float>(0x7fc00000u);
  if (code == 0) return 0x1p-127f;
  return std::bit_cast<float>(static_cast<uint32_t>(code) << 23);
}

constexpr float e4m3_to_f32(uint8_t code) {
  const uint32_t exponent = (code >> 3) & 0xfu;
  const uint32_t mantissa = code & 7u;
  float magnitude;
  if (exponent == 0xf && mantissa == 7) {
    magnitude = std::bit_cast<float>(0x7fc00000u);
  } else if (exponent == 0) {
    magnitude = static_cast<float>(mantissa) * 0x1p-9f;
  } else {
    magnitude = std::bit_cast<float>(((exponent + 120u) << 23) | (mantissa << 20));
  }
  return code & 0x80u ? -magnitude : magnitude;
}

/// Magnitudes beyond 448 saturate to 448; NaN stays NaN.
constexpr uint8_t f32_to_e4m3(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint8_t>((bits >> 24) & 0x80u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint8_t>(sign | 0x7fu);
  if (magnitude >= 0x43e00000u) return static_cast<uint8_t>(sign | 0x7eu);  // 448 and more
  if (magnitude < 0x3c800000u) {                                            // below 2^-6: steps of 2^-9
    const float shifted = std::bit_cast<float>(magnitude) + 0x1p14f;        // ulp of 2^14 is 2^-9
    return static_cast<uint8_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x46800000u));
  }
  const uint32_t rounded = magnitude + 0x7ffffu + ((magnitude >> 20) & 1u);
  const uint32_t code = (rounded - 0x3c000000u) >> 20;
  return static_cast<uint8_t>(sign | (code > 0x7eu ? 0x7eu : code));
}

inline constexpr std::array<float, 16> kE2m1Values = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                                      -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

constexpr float e2m1_to_f32(uint8_t code) { return kE2m1Values[code & 15u]; }

/// Nearest e2m1 code; a tie goes to the code with an even mantissa; beyond 6 saturates. NaN becomes 0.
constexpr uint8_t f32_to_e2m1(float value) {
  const float m = value < 0 ? -value : value;
  uint8_t code = 0;
  if (m > 5.0f) {
    code = 7;
  } else if (m >= 3.5f) {
    code = 6;
  } else if (m > 2.5f) {
    code = 5;
  } else if (m >= 1.75f) {
    code = 4;
  } else if (m > 1.25f) {
    code = 3;
  } else if (m >= 0.75f) {
    code = 2;
  } else if (m > 0.25f) {
    code = 1;
  }
  return value < 0 ? static_cast<uint8_t>(code | 8u) : code;
}

/// e4m3_to_f32 of every code, for kernels.
inline constexpr std::array<float, 256> kE8m0Values = [] {
  std::array<float, 256> values{};
  for (int i = 0; i < 256; ++i) values[static_cast<size_t>(i)] = e8m0_to_f32(static_cast<uint8_t>(i));
  return values;
}();

inline constexpr std::array<float, 256> kE4m3Values = [] {
  std::array<float, 256> values{};
  for (int i = 0; i < 256; ++i) values[static_cast<size_t>(i)] = e4m3_to_f32(static_cast<uint8_t>(i));
  return values;
}();

}  // namespace sluice
