// Chunks of a layer-major group shared the memory of their outputs after a resize that cut layers into tiles.
#include "issues/small_model.h"

namespace sluice::testing {
namespace {

// The demo model: half of all its slots hold two whole layers, which the small one's do not.
TEST(GroupAfterResize, IsCutIntoChunksWhereItsMemoryWasMadeForWholeLayers) {
  SmallModel demo;
  demo.checkpoint = Checkpoint::open(std::filesystem::path(SLUICE_SOURCE_DIR) / "models/demo");
  demo.model = load_model(demo.checkpoint, *demo.device, {});
  ExpertSettings settings;
  settings.slots = 512;
  settings.prefill = PrefillMode::kLayerMajor;
  Runtime runtime(*demo.device, *demo.model, settings);
  Session session(runtime, {.capacity_tokens = 64, .chunk_tokens = 8});
  std::vector<int32_t> prompt;
  for (int32_t i = 0; i < 40; ++i) prompt.push_back(i * 7 % 300);
  ASSERT_FALSE(runtime.resident()->splits_layers());
  runtime.resident()->resize(64);
  ASSERT_TRUE(runtime.resident()->splits_layers());
  EXPECT_EQ(values(session.prefill(prompt)), demo.logits(prompt));
  EXPECT_EQ(runtime.resident()->report().passes.size(), 5u);
  runtime.resident()->resize(512);
  prompt[0] = 299;
  EXPECT_EQ(values(session.prefill(prompt)), demo.logits(prompt));
  EXPECT_EQ(runtime.resident()->report().passes.size(), 6u) << "one group";
}

}  // namespace
}  // namespace sluice::testing
