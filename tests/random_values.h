// Seeded random numbers for tests; the seed is printed with every failure and can be set with
// SLUICE_TEST_SEED.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace sluice {

class RandomValues {
 public:
  explicit RandomValues(uint64_t seed) : seed_(wish(seed)), engine_(seed_) {}

  uint64_t seed() const { return seed_; }
  /// For SCOPED_TRACE.
  std::string trace() const { return "SLUICE_TEST_SEED=" + std::to_string(seed_); }
  int64_t integer(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine_);
  }
  float real(float low, float high) { return std::uniform_real_distribution<float>(low, high)(engine_); }
  std::vector<float> reals(int64_t count, float low = -1, float high = 1) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = real(low, high);
    return values;
  }

 private:
  static uint64_t wish(uint64_t seed) {
    const char* text = std::getenv("SLUICE_TEST_SEED");
    return text != nullptr ? std::strtoull(text, nullptr, 10) : seed;
  }

  uint64_t seed_;
  std::mt19937_64 engine_;
};

}  // namespace sluice
