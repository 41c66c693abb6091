// Host rows are mapped by their reader, not allocated by the device: a link that slowed down the device's own
// pinned memory alone let all experts cross at once, and what the CPU gains beside a slow link could not be
// measured.
#include "issues/small_model.h"

#include <chrono>

namespace sluice::testing {
namespace {

TEST(SlowLink, RowsTakeAtLeastTheirTime) {
  constexpr double kBytesPerMs = 2e5;
  const Checkpoint checkpoint =
      Checkpoint::open(std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/golden/qwen3_moe");
  const auto device = make_host_device(1, kBytesPerMs);
  const auto model = load_model(checkpoint, *device, {});
  ExpertSettings settings;
  settings.slots = 4;
  settings.lookahead = LookaheadMode::kOff;
  Runtime runtime(*device, *model, settings);
  Session session(runtime, {.capacity_tokens = 64});
  session.prefill(std::vector<int32_t>{1});
  const uint64_t before = runtime.resident()->report().demand_bytes;
  const auto start = std::chrono::steady_clock::now();
  for (int32_t id = 2; id < 12; ++id) session.decode(id);
  const double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  const uint64_t crossed = runtime.resident()->report().demand_bytes - before;
  EXPECT_GT(crossed, 0u);
  EXPECT_GE(ms, static_cast<double>(crossed) / kBytesPerMs);
}

}  // namespace
}  // namespace sluice::testing
