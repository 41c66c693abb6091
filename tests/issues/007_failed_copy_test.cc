// Where the host runs ahead of the device, a failed copy showed only after its experts had been adopted: they
// stayed resident without their bytes.
#include "device/threaded/threaded_device.h"
#include "issues/small_model.h"

namespace sluice::testing {
namespace {

TEST(FailedCopy, LeavesNoExpertBehindWhoseBytesNeverCame) {
  SmallModel reference;
  SmallModel model;
  model.model.reset();
  model.device = make_threaded_device();
  model.model = load_model(model.checkpoint, *model.device, {});
  ExpertSettings settings;
  settings.slots = 20;
  settings.prefill = PrefillMode::kStream;
  settings.audit_every = 1;
  Runtime runtime(*model.device, *model.model, settings);
  Session session(runtime, {.capacity_tokens = 32});
  const std::vector<int32_t> prompt = {9, 8, 7, 6, 5};
  model.device->faults().add(Fault::kCopy, "stream experts", 4);
  expect_error(ErrorCode::kIo, {"stream experts"}, [&] { session.prefill(prompt); });
  EXPECT_EQ(values(session.prefill(prompt)), reference.logits(prompt));
  EXPECT_EQ(values(session.decode(4)), reference.logits({9, 8, 7, 6, 5, 4}));
}

}  // namespace
}  // namespace sluice::testing
