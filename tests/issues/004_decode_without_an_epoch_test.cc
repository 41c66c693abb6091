// Without epoch invalidation nothing protects the slots of a prompt from a decode step between its layers:
// the step took them, and the prompt computed with other experts' bytes.
#include "issues/small_model.h"

namespace sluice::testing {
namespace {

TEST(DecodeWithoutAnEpoch, IsRefusedBetweenTheLayersOfAPromptAndThePromptGoesOn) {
  SmallModel model;
  ExpertSettings settings;
  settings.slots = 8;
  settings.ring_slots = 4;
  settings.prefill = PrefillMode::kStream;
  settings.compare.epoch_invalidation = false;
  settings.audit_every = 1;
  Runtime runtime(*model.device, *model.model, settings);
  Session decoding(runtime, {.capacity_tokens = 32}), prompting(runtime, {.capacity_tokens = 32});
  decoding.prefill(std::vector<int32_t>{1, 2, 3});
  for (int32_t id = 4; id < 10; ++id) decoding.decode(id);
  prompting.between_layers([&] {
    expect_error(ErrorCode::kInvalidArgument, {"--prefill-invalidate epoch"}, [&] { decoding.decode(10); });
  });
  const std::vector<int32_t> prompt = {9, 8, 7};
  EXPECT_EQ(values(prompting.prefill(prompt)), model.logits(prompt));
  EXPECT_EQ(values(decoding.decode(10)), model.logits({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

}  // namespace
}  // namespace sluice::testing
