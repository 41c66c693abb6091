// Random weight matrices of every format, with the values that they decode to.
#pragma once

#include <cstring>
#include <vector>

#include "base/scalar.h"
#include "kernels/matrix.h"
#include "random_values.h"

namespace sluice {

struct MatrixData {
  std::vector<std::byte> data, scale;
  std::vector<float> values;  // [n, k]
  Matrix view;

  MatrixData(RandomValues& random, WeightFormat format, int64_t n, int64_t k) {
    data.resize(weight_bytes(format, n, k));
    scale.resize(scale_bytes(format, n, k));
    view = {{format, n, k, data.data(), scale.empty() ? nullptr : scale.data(), 1.0f}};
    fill_fp8_scales(random);
    for (int64_t i = 0; i < n * k; ++i) put(i, random.real(-1, 1), random);
  }

 private:
  void put(int64_t i, float wish, RandomValues& random) {
    switch (view.format) {
      case WeightFormat::kF32:
        return store(i, wish, wish);
      case WeightFormat::kF16:
        return store(i, f32_to_f16(wish), f16_to_f32(f32_to_f16(wish)));
      case WeightFormat::kBf16:
        return store(i, f32_to_bf16(wish), bf16_to_f32(f32_to_bf16(wish)));
      case WeightFormat::kFp8Block:
      case WeightFormat::kFp8Row:
        return put_fp8(i, f32_to_e4m3(100 * wish));
      case WeightFormat::kMxfp4: {
        if (i % 32 == 0)
          scale[static_cast<size_t>(i / 32)] = static_cast<std::byte>(random.integer(120, 130));
        const auto code = static_cast<unsigned>(random.integer(0, 15));
        data[static_cast<size_t>(i / 2)] |= static_cast<std::byte>(i % 2 == 0 ? code : code << 4);
        const auto s = static_cast<uint8_t>(scale[static_cast<size_t>(i / 32)]);
        values.push_back(e2m1_to_f32(static_cast<uint8_t>(code)) * e8m0_to_f32(s));
        return;
      }
      case WeightFormat::kNvfp4: {
        view.global = 0.37f;
        if (i % 16 == 0)
          scale[static_cast<size_t>(i / 16)] = static_cast<std::byte>(random.integer(0x20, 0x48));
        const auto code = static_cast<unsigned>(random.integer(0, 15));
        data[static_cast<size_t>(i / 2)] |= static_cast<std::byte>(i % 2 == 0 ? code : code << 4);
        const auto s = static_cast<uint8_t>(scale[static_cast<size_t>(i / 16)]);
        values.push_back(e2m1_to_f32(static_cast<uint8_t>(code)) * e4m3_to_f32(s) * view.global);
        return;
      }
    }
  }

  bool is_fp8() const {
    return view.format == WeightFormat::kFp8Block || view.format == WeightFormat::kFp8Row;
  }

  void fill_fp8_scales(RandomValues& random) {
    if (!is_fp8()) return;
    for (size_t i = 0; i < scale.size(); i += sizeof(float)) {
      const float value = random.real(0.001f, 0.01f);
      std::memcpy(scale.data() + i, &value, sizeof value);
    }
  }

  void put_fp8(int64_t i, uint8_t code) {
    const int64_t row = i / view.k, column = i % view.k;
    const int64_t blocks = (view.k + 127) / 128;
    const int64_t at = view.format == WeightFormat::kFp8Row ? row : row / 128 * blocks + column / 128;
    float factor = 0;
    std::memcpy(&factor, scale.data() + static_cast<size_t>(at) * sizeof factor, sizeof factor);
    store(i, code, e4m3_to_f32(code) * factor);
  }

  template <class T>
  void store(int64_t i, T stored, float value) {
    std::memcpy(data.data() + static_cast<size_t>(i) * sizeof(T), &stored, sizeof(T));
    values.push_back(value);
  }
};

}  // namespace sluice
