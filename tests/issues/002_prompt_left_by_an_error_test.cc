// An error between the layers of a prompt left its pass open: the next prompt ended the program.
#include "issues/small_model.h"

namespace sluice::testing {
namespace {

TEST(PromptLeftByAnError, LetsTheNextPromptRun) {
  SmallModel model;
  const std::vector<int32_t> prompt = {9, 8, 7, 6, 5, 4, 3, 2, 1, 9, 8, 7, 6, 5, 4, 3, 2, 1};
  for (const PrefillMode mode : {PrefillMode::kStream, PrefillMode::kTouched}) {
    for (const size_t tokens : {size_t{3}, prompt.size()}) {
      ExpertSettings settings;
      settings.slots = 24;
      settings.ring_slots = 16;
      settings.prefill = mode;
      settings.audit_every = 1;
      Runtime runtime(*model.device, *model.model, settings);
      Session session(runtime, {.capacity_tokens = 32});
      session.between_layers([] { throw Error(ErrorCode::kCancelled, "the user left"); });
      const std::vector<int32_t> ids(prompt.begin(), prompt.begin() + static_cast<int64_t>(tokens));
      expect_error(ErrorCode::kCancelled, {"the user left"}, [&] { session.prefill(ids); });
      session.between_layers(nullptr);
      EXPECT_EQ(values(session.prefill(ids)), model.logits(ids));
      EXPECT_EQ(session.cached_tokens(), 0);
      EXPECT_EQ(values(session.decode(11)).size(), 320u);
      EXPECT_GT(runtime.resident()->audits(), 1u);
    }
  }
}

}  // namespace
}  // namespace sluice::testing
