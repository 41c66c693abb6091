// A streaming prompt listed every resident expert, so a decode step between its layers found no slot.
#include "issues/small_model.h"

namespace sluice::testing {
namespace {

TEST(ListedResidents, LeaveSlotsToADecodeStepBetweenTheLayersOfAPrompt) {
  SmallModel model;
  ExpertSettings settings;
  settings.slots = 4;  // a ring of two, and the two experts of a token
  settings.ring_slots = 2;
  settings.prefill = PrefillMode::kStream;
  Runtime runtime(*model.device, *model.model, settings);
  Session decoding(runtime, {.capacity_tokens = 32}), prompting(runtime, {.capacity_tokens = 32});
  decoding.prefill(std::vector<int32_t>{1, 2, 3});
  decoding.decode(4);
  int32_t next = 5;
  prompting.between_layers([&] { decoding.decode(next++); });
  const std::vector<int32_t> prompt = {9, 8, 7};
  EXPECT_EQ(values(prompting.prefill(prompt)), model.logits(prompt));
  EXPECT_EQ(next, 7);
  EXPECT_EQ(values(decoding.decode(next)), model.logits({1, 2, 3, 4, 5, 6, 7}));
}

}  // namespace
}  // namespace sluice::testing
