// Host rows whose pages are locked, refused, or not asked for: what is marked, and that no bit depends on it.
#include <cstring>

#include "device/threaded/threaded_device.h"
#include "issues/small_model.h"

namespace sluice::testing {
namespace {

/// 3 MoE layers of 8 experts on a device that refuses the locks whose purpose holds `refused`, or the nth of
/// them.
struct LockedModel {
  LockedModel(LockMode lock, const std::string& refused, int nth = FaultPlan::kEvery,
              const std::vector<int64_t>& order = {}) {
    if (!refused.empty()) device->faults().add(Fault::kPageLock, refused, nth);
    LoadOptions options;
    options.expert_order = [&](const ModelInfo&) { return order; };
    options.host_rows.lock = lock;
    model = load_model(checkpoint, *device, options);
  }
  std::vector<bool> staged() const {
    std::vector<bool> list;
    for (const LayerRows& layer : model->expert_rows()) list.push_back(layer.staged);
    return list;
  }
  const HostRowReport& report() const { return model->info().host_rows; }

  Checkpoint checkpoint =
      Checkpoint::open(std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/golden/qwen3_moe");
  std::unique_ptr<Device> device = make_threaded_device();
  std::unique_ptr<Model> model;
};

TEST(HostRows, AreLockedOnlyWhereThatIsAskedFor) {
  for (const LockMode mode : {LockMode::kAuto, LockMode::kOff}) {
    const LockedModel model(mode, "");
    EXPECT_EQ(model.staged(), (std::vector<bool>{false, false, false}));
    EXPECT_EQ(model.report().locked_bytes, 0u);
    EXPECT_EQ(model.report().bytes, model.model->info().expert_bytes);
  }
  const LockedModel locked(LockMode::kOn, "");
  EXPECT_EQ(locked.report().locked_bytes, locked.report().bytes);
}

TEST(HostRows, AreStagedLayerByLayerWhereTheirLockIsRefused) {
  const LockedModel model(LockMode::kOn, "MoE layer 1");
  EXPECT_EQ(model.staged(), (std::vector<bool>{false, true, false}));
  EXPECT_EQ(model.report().staged_layers, std::vector<int64_t>{1});
  EXPECT_EQ(model.report().locked_bytes, model.report().bytes / 3 * 2);
  EXPECT_THAT(model.report().refusal, ::testing::HasSubstr("expert rows of MoE layer 1"));
}

TEST(HostRows, KeepTheirLayersWhateverTheOrderOfReading) {
  // The first lock is refused, which is that of the layer that was read first.
  const LockedModel own(LockMode::kOn, "MoE layer", 1);
  const LockedModel other(LockMode::kOn, "MoE layer", 1, {2, 0, 1});
  EXPECT_EQ(own.staged(), (std::vector<bool>{true, false, false}));
  EXPECT_EQ(other.staged(), (std::vector<bool>{false, false, true}));
  EXPECT_EQ(other.report().staged_layers, std::vector<int64_t>{2});
  for (size_t l = 0; l < 3; ++l) {
    const LayerRows &a = own.model->expert_rows()[l], &b = other.model->expert_rows()[l];
    ASSERT_EQ(a.bytes(), b.bytes());
    EXPECT_EQ(std::memcmp(a.rows.data(), b.rows.data(), a.bytes()), 0) << "layer " << l;
    EXPECT_EQ(a.scalars, b.scalars) << "layer " << l;
  }
}

TEST(HostRows, ARequiredLockThatIsRefusedIsAnError) {
  expect_error(ErrorCode::kOutOfMemory, {"--lock-host-rows required", "MoE layer 2", "refused"},
               [] { LockedModel model(LockMode::kRequired, "MoE layer 2"); });
}

struct Way {
  const char* refused;
  PrefillMode prefill;
  LookaheadMode lookahead;
  bool side;
};
class StagedLayers : public ::testing::TestWithParam<Way> {};

// On the threaded device: the staging stream has a thread of its own.
TEST_P(StagedLayers, GiveTheSameBits) {
  SmallModel plain;
  const LockedModel model(LockMode::kOn, GetParam().refused);
  std::vector<int32_t> prompt;
  for (int32_t i = 0; i < 30; ++i) prompt.push_back(i * 11 % 300);
  ExpertSettings settings;
  const bool touched = GetParam().prefill == PrefillMode::kTouched;
  settings.slots = touched ? 18 : 11;
  settings.ring_slots = touched ? 16 : 8;
  settings.prefill = GetParam().prefill;
  settings.lookahead = GetParam().lookahead;
  settings.compare.side_lookahead = GetParam().side;
  settings.audit_every = 1;
  Runtime direct(*plain.device, *plain.model, ExpertSettings());
  Runtime runtime(*model.device, *model.model, settings);
  runtime.resident()->fill_from(std::vector<Resident>{{0, 1}, {1, 1}, {2, 1}});
  Session expected(direct, {.capacity_tokens = 64}), session(runtime, {.capacity_tokens = 64});
  EXPECT_EQ(values(session.prefill(prompt)), values(expected.prefill(prompt)));
  for (int32_t id = 40; id < 48; ++id) EXPECT_EQ(values(session.decode(id)), values(expected.decode(id)));
  EXPECT_GT(runtime.resident()->audits(), 0u);
  EXPECT_NO_THROW(runtime.resident()->report());
}

INSTANTIATE_TEST_SUITE_P(
    Ways, StagedLayers,
    ::testing::Values(Way{"", PrefillMode::kStream, LookaheadMode::kOn, false},
                      Way{"expert rows", PrefillMode::kStream, LookaheadMode::kOn, false},
                      Way{"expert rows", PrefillMode::kStream, LookaheadMode::kOn, true},
                      Way{"expert rows", PrefillMode::kTouched, LookaheadMode::kOff, false},
                      Way{"MoE layer 1", PrefillMode::kLayerMajor, LookaheadMode::kOn, false},
                      Way{"MoE layer 2", PrefillMode::kTouched, LookaheadMode::kOn, false}));

}  // namespace
}  // namespace sluice::testing
