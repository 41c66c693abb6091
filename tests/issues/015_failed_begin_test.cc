// A copy that failed while a pass began left the pass open: the next prompt found two passes at once.
#include "issues/small_model.h"

namespace sluice::testing {
namespace {

TEST(FailedBegin, LeavesNoPassOpen) {
  SmallModel model;
  ExpertSettings settings;
  settings.slots = 20;
  settings.prefill = PrefillMode::kStream;
  settings.audit_every = 1;
  Runtime runtime(*model.device, *model.model, settings);
  Session session(runtime, {.capacity_tokens = 32});
  const std::vector<int32_t> prompt = {9, 8, 7, 6, 5};
  for (const char* copy : {"snapshot of slots", "snapshot of listed", "pass table"}) {
    SCOPED_TRACE(copy);
    model.device->faults().add(Fault::kCopy, copy);
    expect_error(ErrorCode::kIo, {copy}, [&] { session.prefill(prompt); });
    model.device->faults().clear();
    EXPECT_EQ(values(session.prefill(prompt)), model.logits(prompt));
  }
}

// Without hits all passes share one table; a copy of it that failed was not made again.
TEST(FailedBegin, WritesTheTableThatAllPassesShareAnew) {
  SmallModel model;
  ExpertSettings settings;
  settings.slots = 20;
  settings.prefill = PrefillMode::kStream;
  settings.compare.hits = HitMode::kOff;
  Runtime runtime(*model.device, *model.model, settings);
  Session session(runtime, {.capacity_tokens = 32});
  const std::vector<int32_t> prompt = {9, 8, 7, 6, 5};
  model.device->faults().add(Fault::kCopy, "pass table");
  expect_error(ErrorCode::kIo, {"pass table"}, [&] { session.prefill(prompt); });
  EXPECT_EQ(values(session.prefill(prompt)), model.logits(prompt));
}

}  // namespace
}  // namespace sluice::testing
