// The merges of a BPE model: which pairs join, in which order, and into what.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "text/tokenizer.h"

namespace sluice {

/// A flat hash keyed by (left id, right id). A rank is the merge's place in the file: the lowest is applied
/// first.
class MergeTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  /// Room for `merges` entries.
  explicit MergeTable(size_t merges)
      : slots_(std::bit_ceil(2 * merges + 2)),
        shift_(64 - static_cast<unsigned>(std::countr_zero(slots_.size()))) {
    merged_.reserve(merges);
  }

  /// Adds the next merge. A pair that is there already gets the new rank, as the reference has it.
  void add(TokenId left, TokenId right, TokenId merged) {
    Slot& slot = slots_[slot_of(key_of(left, right))];
    slot = {key_of(left, right), static_cast<uint32_t>(merged_.size())};
    merged_.push_back(merged);
  }
  /// Asks for the memory that an add or a rank of the pair will touch first.
  void prefetch(TokenId left, TokenId right) const {
    __builtin_prefetch(&slots_[first_slot_of(key_of(left, right))], 1);
  }
  /// Rank of the pair, kNone if it does not merge.
  uint32_t rank(TokenId left, TokenId right) const { return slots_[slot_of(key_of(left, right))].rank; }
  TokenId merged(uint32_t rank) const { return merged_[rank]; }
  size_t size() const { return merged_.size(); }

 private:
  struct Slot {
    uint64_t key = 0;
    uint32_t rank = kNone;
  };
  static uint64_t key_of(TokenId left, TokenId right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  size_t first_slot_of(uint64_t key) const {
    // 2^64 / golden ratio spreads neighbouring ids over the top bits.
    return (key ^ key >> 29) * 0x9E3779B97F4A7C15u >> shift_;
  }
  size_t slot_of(uint64_t key) const {
    size_t index = first_slot_of(key);
    while (slots_[index].rank != kNone && slots_[index].key != key) index = (index + 1) & (slots_.size() - 1);
    return index;
  }

  std::vector<Slot> slots_;  // open addressing, a power of two, at most half full
  std::vector<TokenId> merged_;
  unsigned shift_;
};

}  // namespace sluice
