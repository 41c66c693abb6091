// A prompt that failed between the hand-over of experts to the CPU and their answer left its call with the
// workers, and the next forward failed because they were still busy with it.
#include "issues/small_model.h"

namespace sluice::testing {
namespace {

TEST(UntakenCpuCall, OfAFailedPromptDoesNotFailTheNextForward) {
  SmallModel reference;
  SmallModel model;
  ExpertSettings settings;
  settings.slots = 20;
  settings.prefill = PrefillMode::kStream;
  settings.cpu.mode = CpuMode::kAlways;
  settings.cpu.inline_work = true;  // the workers answer when they are waited for
  Runtime runtime(*model.device, *model.model, settings);
  Session session(runtime, {.capacity_tokens = 32});
  const std::vector<int32_t> prompt = {9, 8, 7, 6, 5};
  model.device->faults().add(Fault::kCopy, "stream experts", 1);
  expect_error(ErrorCode::kIo, {"stream experts"}, [&] { session.prefill(prompt); });
  EXPECT_EQ(values(session.prefill(prompt)), reference.logits(prompt));
  EXPECT_EQ(values(session.decode(4)), reference.logits({9, 8, 7, 6, 5, 4}));
}

}  // namespace
}  // namespace sluice::testing
