// How many of a layer's missing experts cross the link when the CPU can compute the others.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice {

/// Either a fixed number of misses, or the fraction that lets link and CPU finish together.
struct FetchRule {
  bool by_fraction = false;
  int32_t cap = 0;            // misses fetched at most, >= 0
  uint32_t fraction_q16 = 0;  // f in units of 1/65536, at most 65536

  static constexpr FetchRule at_most(int32_t cap) { return {.cap = cap}; }
  static constexpr FetchRule fraction(double f) {
    return {.by_fraction = true, .fraction_q16 = static_cast<uint32_t>(f * 65536.0 + 0.5)};
  }

  /// Of `misses`, those to fetch. With a fraction f: floor(f * misses) or one more, whichever makes the
  /// longer of both sides shorter. A fetch takes 1 - f, an expert on the CPU f; ties go to fewer fetches.
  constexpr int32_t fetches(int32_t misses) const {
    if (!by_fraction) return std::clamp(cap, 0, misses);
    const int64_t f = std::min<uint32_t>(fraction_q16, 65536);
    const auto longer_side = [&](int64_t fetched) {
      return std::max(fetched * (65536 - f), (misses - fetched) * f);
    };
    const int64_t low = f * misses >> 16;
    const bool one_more = low < misses && longer_side(low + 1) < longer_side(low);
    return static_cast<int32_t>(one_more ? low + 1 : low);
  }
};

}  // namespace sluice
