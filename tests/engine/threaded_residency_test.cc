// Slots on streams that really run side by side: a worker thread each. What this is for is ThreadSanitizer.
#include <gtest/gtest.h>

#include <cstdio>

#include "device/threaded/threaded_device.h"
#include "engine/residency_matrix.h"
#include "random_values.h"

namespace sluice::testing {
namespace {

/// A golden checkpoint on a device of its own.
struct Loaded {
  explicit Loaded(std::unique_ptr<Device> own)
      : checkpoint(Checkpoint::open(std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/golden/qwen3_moe")),
        device(std::move(own)),
        model(load_model(checkpoint, *device, LoadOptions())) {}

  /// Logits of a text in chunks, then of a few tokens one by one. Nobody looks at routes, so the host runs
  /// ahead of the streams as far as serving lets it.
  std::vector<float> run(const ExpertSettings& settings, std::span<const int32_t> ids, int64_t chunk) {
    Runtime runtime(*device, *model, settings);
    Session session(runtime, {.capacity_tokens = 64, .chunk_tokens = chunk});
    std::vector<float> all;
    const auto keep = [&](std::span<const float> logits) {
      all.insert(all.end(), logits.begin(), logits.end());
    };
    keep(session.prefill(ids.first(ids.size() / 2)));
    for (int32_t id = 5; id < 10; ++id) keep(session.decode(id));
    keep(session.prefill(ids));
    for (int32_t id = 20; id < 23; ++id) keep(session.decode(id));
    return all;
  }

  Checkpoint checkpoint;
  std::unique_ptr<Device> device;
  std::unique_ptr<Model> model;
};

TEST(ThreadedResidency, StreamsSideBySideChangeNoBit) {
  RandomValues random(20262);
  std::printf("SLUICE_TEST_SEED=%llu\n", static_cast<unsigned long long>(random.seed()));
  SCOPED_TRACE(random.trace());
  Loaded plain(make_host_device(1)), threaded(make_threaded_device());
  const std::vector<int32_t>& ids = matrix_model(1).ids;
  int runs = 0;
  for (const Combination& combination : residency_matrix(256)) {
    if (combination.model != 1 || random.integer(0, 2) != 0) continue;
    SCOPED_TRACE(describe(combination));
    const int64_t chunk = combination.cut.chunk;
    EXPECT_TRUE(threaded.run(combination.settings, ids, chunk) == plain.run(ExpertSettings(), ids, chunk));
    ++runs;
  }
  EXPECT_GE(runs, 8);
}

}  // namespace
}  // namespace sluice::testing
