// Numbers of slots: what users write, and what fits.
#include "experts/settings.h"

#include <algorithm>

#include "base/counted.h"
#include "base/error.h"
#include "experts/slot_count.h"

namespace sluice {
namespace {

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, "--expert-slots " + std::string(text) + ": " + why);
}

[[noreturn]] void refuse_above(std::string_view text, int64_t all) {
  refuse(text, "the model has only " + counted(all, "expert"));
}

[[noreturn]] void refuse_below(std::string_view text, const std::string& before, const ExpertShape& shape) {
  refuse(text, before + "at least " + std::to_string(min_slots(shape)) +
                   " are needed (experts a token x requests)");
}

}  // namespace

int64_t min_slots(const ExpertShape& shape) {
  return std::max<int64_t>(2, std::min(shape.experts, shape.decode_rows * shape.top_k));
}

int64_t parse_slots(std::string_view text, const ExpertShape& shape) {
  const int64_t all = shape.layers * shape.experts;
  if (text == "auto") return 0;
  if (text == "all") {
    if (all != 0 && all < min_slots(shape)) refuse_below(text, "", shape);
    return all;
  }
  const SlotCount count = parse_expert_slots(text);
  const int64_t slots = count.of(all);
  if (slots > all) refuse_above(text, all);
  if (slots < min_slots(shape)) {
    refuse_below(text, count.is_share ? "rounds to " + std::to_string(slots) + " slots; " : "", shape);
  }
  return slots;
}

void check_slots(const ExpertShape& shape, int64_t slots) {
  const int64_t all = shape.layers * shape.experts;
  if (slots > all) refuse_above(std::to_string(slots), all);
  if (slots < min_slots(shape)) refuse_below(std::to_string(slots), "", shape);
}

int64_t ring_slots(const ExpertShape& shape, int64_t slots, int64_t wish) {
  const int64_t keep = min_slots(shape);
  if (wish != 0) {
    if (wish >= 2 && wish % 2 == 0 && wish <= slots && wish <= 2 * shape.experts) return wish;
    throw Error(ErrorCode::kInvalidArgument, "--prefill-ring " + std::to_string(wish) +
                                                 " does not fit: it needs an even number from 2 to " +
                                                 std::to_string(std::min(slots, 2 * shape.experts) / 2 * 2) +
                                                 " (two tiles within " + std::to_string(slots) +
                                                 " slots, at most two layers of " +
                                                 std::to_string(shape.experts) + " experts)");
  }
  const int64_t half = std::max<int64_t>(slots / 2, 2);
  const int64_t room = std::max<int64_t>(2, std::min(half, slots - keep));
  return std::min(2 * shape.experts, room) / 2 * 2;
}

}  // namespace sluice
