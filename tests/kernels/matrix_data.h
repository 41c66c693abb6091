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
    view = {format, n, k, data.data(), scale.empty() ? nullptr : scale.data(), 1.0f};
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

  template <class T>
  void store(int64_t i, T stored, float value) {
    std::memcpy(data.data() + static_cast<size_t>(i) * sizeof(T), &stored, sizeof(T));
    values.push_back(value);
  }
};

}  // namespace sluice
