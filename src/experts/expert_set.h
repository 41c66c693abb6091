// A set of experts of one layer, on the stack: duplicates fall out, and it is walked in ascending order.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "experts/slot_map.h"

namespace sluice {

class ExpertSet {
 public:
  explicit ExpertSet(int32_t experts) : words_used_((experts + 63) / 64) {
    for (int32_t i = 0; i < words_used_; ++i) words_[static_cast<size_t>(i)] = 0;
  }

  void insert(int32_t expert) { word(expert) |= bit(expert); }
  void erase(int32_t expert) { word(expert) &= ~bit(expert); }
  constexpr bool contains(int32_t expert) const {
    return (words_[static_cast<size_t>(expert / 64)] & bit(expert)) != 0;
  }

  template <class Body>
  void for_each(Body&& body) const {
    for (int32_t i = 0; i < words_used_; ++i) {
      for (uint64_t rest = words_[static_cast<size_t>(i)]; rest != 0; rest &= rest - 1) {
        body(i * 64 + std::countr_zero(rest));
      }
    }
  }

 private:
  uint64_t& word(int32_t expert) { return words_[static_cast<size_t>(expert / 64)]; }
  static constexpr uint64_t bit(int32_t expert) { return uint64_t{1} << (expert % 64); }

  int32_t words_used_;
  std::array<uint64_t, kMaxExperts / 64> words_;  // the first words_used_ are valid
};

}  // namespace sluice
