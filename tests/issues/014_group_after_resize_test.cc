// Chunks of a layer-major group shared the memory of their outputs after a resize that cut layers into tiles.
#include "issues/small_model.h"

namespace sluice::testing {
namespace {

TEST(GroupAfterResize, IsCutIntoChunksWhereItsMemoryWasMadeForWholeLayers) {
  // Half of the slots have to hold two whole layers.
  SmallModel model{.checkpoint = Checkpoint::open(std::filesystem::path(SLUICE_SOURCE_DIR) / "models/demo")};
  ExpertSettings settings;
  settings.slots = 300;
  settings.prefill = PrefillMode::kLayerMajor;
  Runtime runtime(*model.device, *model.model, settings);
  Session session(runtime, {.capacity_tokens = 64, .chunk_tokens = 8});
  std::vector<int32_t> prompt;
  for (int32_t i = 0; i < 40; ++i) prompt.push_back(i * 7 % 300);
  ASSERT_FALSE(runtime.resident()->splits_layers());
  runtime.resident()->resize(64);
  ASSERT_TRUE(runtime.resident()->splits_layers());
  EXPECT_EQ(values(session.prefill(prompt)), model.logits(prompt));
  EXPECT_EQ(runtime.resident()->report().passes.size(), 5u);
  runtime.resident()->resize(300);
  prompt[0] = 299;
  EXPECT_EQ(values(session.prefill(prompt)), model.logits(prompt));
  EXPECT_EQ(runtime.resident()->report().passes.size(), 6u) << "one group";
}

}  // namespace
}  // namespace sluice::testing
