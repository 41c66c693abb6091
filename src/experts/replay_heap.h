// A heap of slots from which any slot can be removed.
#pragma once

#include <compare>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/error.h"

namespace sluice {

/// Binary heap over slots [0, slots) with the lowest rank on top. All operations are O(log slots).
class SlotHeap {
 public:
  struct Rank {
    int64_t value = 0, last_use = 0;
    int32_t slot = 0;
    auto operator<=>(const Rank&) const = default;
  };

  explicit SlotHeap(int64_t slots) : place_(static_cast<size_t>(slots), -1) {}

  /// The slot is not in the heap.
  void push(const Rank& rank) {
    heap_.push_back(rank);
    rise(heap_.size() - 1);
  }
  int32_t pop() {
    SLUICE_CHECK(!heap_.empty());
    const int32_t slot = heap_.front().slot;
    remove(slot);
    return slot;
  }
  void remove(int32_t slot) {
    const int32_t place = std::exchange(place_[static_cast<size_t>(slot)], -1);
    SLUICE_CHECK(place >= 0);
    const Rank last = heap_.back();
    heap_.pop_back();
    if (last.slot == slot) return;
    heap_[static_cast<size_t>(place)] = last;
    rise(static_cast<size_t>(place));
    sink(static_cast<size_t>(place_[static_cast<size_t>(last.slot)]));
  }
  /// Gives every slot the value value_of(slot) and orders anew, in O(slots).
  template <class ValueOf>
  void revalue(ValueOf value_of) {
    for (Rank& rank : heap_) rank.value = value_of(rank.slot);
    for (size_t i = heap_.size() / 2; i-- > 0;) sink(i);
  }

 private:
  void put(size_t place, const Rank& rank) {
    heap_[place] = rank;
    place_[static_cast<size_t>(rank.slot)] = static_cast<int32_t>(place);
  }
  void rise(size_t place) {
    const Rank rank = heap_[place];
    while (place > 0 && rank < heap_[(place - 1) / 2]) {
      put(place, heap_[(place - 1) / 2]);
      place = (place - 1) / 2;
    }
    put(place, rank);
  }
  void sink(size_t place) {
    const Rank rank = heap_[place];
    for (size_t child = 2 * place + 1; child < heap_.size(); child = 2 * place + 1) {
      if (child + 1 < heap_.size() && heap_[child + 1] < heap_[child]) ++child;
      if (rank <= heap_[child]) break;
      put(place, heap_[child]);
      place = child;
    }
    put(place, rank);
  }

  std::vector<Rank> heap_;
  std::vector<int32_t> place_;  // [slots]: index into heap_, -1 outside
};

}  // namespace sluice
