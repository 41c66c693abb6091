// Lists of slots in which a slot is in one list at most and leaves it in O(1).
#pragma once

#include <cstdint>
#include <vector>

namespace sluice {

/// `lists` circular doubly linked lists over `slots` slots; no list's links are ever allocated again.
class SlotLists {
 public:
  SlotLists(int64_t slots, int64_t lists) : slots_(slots), links_(static_cast<size_t>(slots + lists)) {
    for (size_t i = 0; i < links_.size(); ++i) links_[i] = {static_cast<int32_t>(i), static_cast<int32_t>(i)};
  }

  /// The first slot of `list`; -1 if it is empty.
  int32_t front(int64_t list) const {
    const int32_t first = links_[head(list)].next;
    return first < slots_ ? first : -1;
  }
  bool empty(int64_t list) const { return front(list) < 0; }
  void remove(int32_t slot) {
    Link& link = links_[static_cast<size_t>(slot)];
    at(link.previous).next = link.next;
    at(link.next).previous = link.previous;
    link = {slot, slot};
  }
  /// `slot` is in no list.
  void push_back(int64_t list, int32_t slot) {
    const auto end = static_cast<int32_t>(head(list));
    const int32_t last = at(end).previous;
    at(slot) = {last, end};
    at(last).next = slot;
    at(end).previous = slot;
  }

 private:
  struct Link {
    int32_t previous = 0, next = 0;
  };
  size_t head(int64_t list) const { return static_cast<size_t>(slots_ + list); }
  Link& at(int32_t node) { return links_[static_cast<size_t>(node)]; }

  int64_t slots_;
  std::vector<Link> links_;  // [slots + lists]: the heads come last
};

}  // namespace sluice
