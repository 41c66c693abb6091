// A decode step that found no slot failed every later forward, and left its keys and values in the cache.
#include "issues/small_model.h"

namespace sluice::testing {
namespace {

TEST(FailedForward, FailsAloneAndLeavesNothingInTheCache) {
  SmallModel model;
  ExpertSettings settings;
  settings.slots = 4;
  settings.ring_slots = 4;  // a prompt borrows all slots: nothing is left to a decode step
  settings.prefill = PrefillMode::kStream;
  Runtime runtime(*model.device, *model.model, settings);
  Session decoding(runtime, {.capacity_tokens = 32}), prompting(runtime, {.capacity_tokens = 32});
  decoding.prefill(std::vector<int32_t>{1, 2, 3});
  int failures = 0;
  prompting.between_layers([&] {
    expect_error(ErrorCode::kOutOfMemory, {"slot"}, [&] { decoding.decode(4); });
    ++failures;
  });
  const std::vector<int32_t> prompt = {9, 8, 7};
  EXPECT_EQ(values(prompting.prefill(prompt)), model.logits(prompt));
  EXPECT_EQ(failures, 2);
  EXPECT_EQ(decoding.ids(), (std::vector<int32_t>{1, 2, 3}));
  EXPECT_EQ(values(decoding.prefill(std::vector<int32_t>{1, 2, 3, 4, 5})), model.logits({1, 2, 3, 4, 5}));
}

}  // namespace
}  // namespace sluice::testing
