// Vector clocks: which operations happened before which (Mattern, "Virtual time and global states", 1988).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice {

/// For each thread of execution (0 is the host, then the streams) how many of its operations came before.
class VectorClock {
 public:
  uint32_t at(size_t thread) const { return thread < counts_.size() ? counts_[thread] : 0; }
  void advance(size_t thread) {
    if (thread >= counts_.size()) counts_.resize(thread + 1);
    ++counts_[thread];
  }
  void join(const VectorClock& other) {
    if (other.counts_.size() > counts_.size()) counts_.resize(other.counts_.size());
    for (size_t i = 0; i < other.counts_.size(); ++i) counts_[i] = std::max(counts_[i], other.counts_[i]);
  }
  /// Whether joining `other` would change nothing.
  bool covers(const VectorClock& other) const {
    for (size_t i = 0; i < other.counts_.size(); ++i) {
      if (at(i) < other.counts_[i]) return false;
    }
    return true;
  }

 private:
  std::vector<uint32_t> counts_;
};

}  // namespace sluice
