// Numbers of slots as users write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice {

/// "64", or a share of all experts such as "12.5%", as it was written: in decimal, nothing rounded.
struct SlotCount {
  uint64_t digits = 0;  // without the point: 125 for "12.5%"
  int decimals = 0;     // of them behind the point
  bool is_share = false;

  /// Of `all` experts, rounded down. At most INT64_MAX.
  int64_t of(int64_t all) const;
  /// What is wrong with it whatever the model is: a fraction of a slot, more than 100 %, none at all. Empty:
  /// nothing.
  std::string problem() const;
};

/// Digits, up to 17 behind a point, and a % for a share; nothing for any other text, with signs, blanks or
/// exponents. Numbers that are too large for any model become the largest.
std::optional<SlotCount> read_slot_count(std::string_view text);
/// A value of --expert-slots that is neither auto nor all. Throws Error kInvalidArgument for other text and
/// for numbers with a problem.
SlotCount parse_expert_slots(std::string_view text);

}  // namespace sluice
