// Decimal numbers without floating point: 41 % of 600 is 246, and no double holds 0.41.
#include "experts/slot_count.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"

namespace sluice {
namespace {

__extension__ typedef unsigned __int128 Wide;

constexpr int kMostDecimals = 17;  // 100 % of them are less than 2^64

bool all_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

Wide power_of_ten(int exponent) {
  Wide power = 1;
  for (int i = 0; i < exponent; ++i) power *= 10;
  return power;
}

}  // namespace

std::optional<SlotCount> read_slot_count(std::string_view text) {
  SlotCount count;
  count.is_share = text.ends_with('%');
  if (count.is_share) text.remove_suffix(1);
  const size_t point = std::min(text.find('.'), text.size());
  const std::string_view whole = text.substr(0, point), part = text.substr(std::min(point + 1, text.size()));
  if (!all_digits(whole) || (point < text.size() && !all_digits(part))) return {};
  if (part.size() > static_cast<size_t>(kMostDecimals)) return {};
  count.decimals = static_cast<int>(part.size());
  for (const std::string_view digits : {whole, part}) {
    for (const char c : digits) {
      const Wide next = Wide{count.digits} * 10 + static_cast<Wide>(c - '0');
      count.digits = static_cast<uint64_t>(std::min<Wide>(next, UINT64_MAX));
    }
  }
  return count;
}

SlotCount parse_expert_slots(std::string_view text) {
  const std::optional<SlotCount> count = read_slot_count(text);
  const std::string problem =
      count ? count->problem() : "expected a number, a percentage such as 25%, all or auto";
  if (problem.empty()) return *count;
  throw Error(ErrorCode::kInvalidArgument, "--expert-slots " + std::string(text) + ": " + problem);
}

int64_t SlotCount::of(int64_t all) const {
  const Wide experts = is_share ? static_cast<Wide>(std::max<int64_t>(all, 0)) : Wide{1};
  const Wide slots = Wide{digits} * experts / (power_of_ten(decimals) * (is_share ? 100 : 1));
  return static_cast<int64_t>(std::min<Wide>(slots, INT64_MAX));
}

std::string SlotCount::problem() const {
  if (!is_share && decimals > 0) return "a number of slots is whole";
  if (is_share && digits > 100 * power_of_ten(decimals)) return "more than 100%";
  if (digits == 0) return "experts need some slots";
  return {};
}

}  // namespace sluice
