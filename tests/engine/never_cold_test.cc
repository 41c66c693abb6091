// Warm fills and resizes of the experts that serve: what the slots hold, and what a refusal leaves.
#include <algorithm>

#include "issues/small_model.h"

namespace sluice::testing {
namespace {

/// 3 MoE layers of 8 experts, 2 a token, in `slots` slots.
class NeverCold : public ::testing::Test {
 protected:
  std::unique_ptr<Runtime> runtime(int64_t slots, int64_t ring = 0) {
    ExpertSettings settings;
    settings.slots = slots;
    settings.ring_slots = ring;
    settings.lookahead = LookaheadMode::kOff;
    settings.audit_every = 1;
    return std::make_unique<Runtime>(*model_.device, *model_.model, settings);
  }
  /// The logits of the last token; every token goes through the decode path.
  std::vector<float> answer(Runtime& runtime, const std::vector<int32_t>& ids) {
    Session session(runtime, {.capacity_tokens = 64});
    std::vector<float> last;
    session.run_all(ids, 0, [&](int64_t, std::span<const float> logits, int64_t) { last = values(logits); });
    return last;
  }
  static uint64_t misses(ResidentExperts& experts) {
    uint64_t sum = 0;
    for (const ExpertLayerReport& layer : experts.report().layers) sum += layer.misses;
    return sum;
  }

  SmallModel model_;
  const std::vector<int32_t> ids_ = {5, 9, 2, 7, 100, 201, 33, 64};
};

TEST_F(NeverCold, AFullPoolFromTheStartHasNoMiss) {
  std::vector<Resident> all;
  for (int32_t l = 0; l < 3; ++l) {
    for (int32_t e = 0; e < 8; ++e) all.push_back({l, e});
  }
  const auto warm = runtime(24);
  const FillCount filled = warm->resident()->fill_from(all);
  EXPECT_EQ(filled.rows, 24u);
  EXPECT_EQ(warm->resident()->residency(), all);
  EXPECT_EQ(answer(*warm, ids_), model_.logits(ids_));
  EXPECT_EQ(misses(*warm->resident()), 0u);
  EXPECT_EQ(warm->resident()->report().warm.bytes, filled.bytes);
  EXPECT_EQ(warm->resident()->fill_from(all).rows, 0u) << "nothing is absent";
}

TEST_F(NeverCold, AListThatIsTooLongFillsWithItsEnd) {
  const std::vector<Resident> list = {{0, 1}, {0, 2}, {1, 3}, {2, 4}, {2, 4}, {2, 5}, {0, 6}};
  const auto warm = runtime(4);
  EXPECT_EQ(warm->resident()->fill_from(list).rows, 4u);
  EXPECT_EQ(warm->resident()->residency(), (std::vector<Resident>{{1, 3}, {2, 4}, {2, 5}, {0, 6}}));
  expect_error(ErrorCode::kInvalidArgument, {"expert 8", "MoE layer 1"}, [&] {
    warm->resident()->fill_from(std::vector<Resident>{{1, 8}});
  });
}

TEST_F(NeverCold, WhatIsSavedMakesTheNextStartWarm) {
  const auto first = runtime(12);
  answer(*first, ids_);
  const std::vector<Resident> saved = first->resident()->residency();
  EXPECT_EQ(saved.size(), 12u);
  const auto second = runtime(12);
  second->resident()->fill_from(saved);
  EXPECT_EQ(second->resident()->residency(), saved);
  EXPECT_EQ(answer(*second, ids_), model_.logits(ids_));
  EXPECT_LT(misses(*second->resident()), misses(*first->resident()));
}

TEST_F(NeverCold, IdleTimeBringsBackWhatWasUsedLast) {
  const auto experts = runtime(4);
  answer(*experts, ids_);
  const std::vector<Resident> few = experts->resident()->residency();
  EXPECT_EQ(experts->resident()->fill_idle(size_t{1} << 30).rows, 0u) << "no slot is empty";
  experts->resident()->resize(7);
  const uint64_t row = model_.model->expert_rows()[0].layout.row_bytes;
  EXPECT_EQ(experts->resident()->fill_idle(row - 1).rows, 0u);
  EXPECT_EQ(experts->resident()->fill_idle(2 * row).rows, 2u);
  EXPECT_EQ(experts->resident()->fill_idle(size_t{1} << 30).rows, 1u);
  std::vector<Resident> now = experts->resident()->residency();
  EXPECT_EQ(now.size(), 7u);
  for (const Resident& resident : few) EXPECT_EQ(std::count(now.begin(), now.end(), resident), 1);
  EXPECT_EQ(experts->resident()->report().idle.bytes, 3 * row);
  EXPECT_EQ(answer(*experts, ids_), model_.logits(ids_));
}

TEST_F(NeverCold, ExpertsThatNobodyAskedForAreNotFilledInIdleTime) {
  const auto experts = runtime(24);
  EXPECT_EQ(experts->resident()->fill_idle(size_t{1} << 30).rows, 0u);
  answer(*experts, {5});
  const std::vector<Resident> used = experts->resident()->residency();
  experts->resident()->fill_idle(size_t{1} << 30);
  EXPECT_EQ(experts->resident()->residency(), used);
}

TEST_F(NeverCold, AResizeKeepsWhatLiesInSlotsThatStay) {
  const auto experts = runtime(12);
  answer(*experts, ids_);
  const std::vector<Resident> before = experts->resident()->residency();
  experts->resident()->resize(24);
  EXPECT_EQ(experts->resident()->residency(), before);
  experts->resident()->resize(9);
  const std::vector<Resident> after = experts->resident()->residency();
  EXPECT_EQ(after.size(), 9u);
  for (const Resident& resident : after) EXPECT_EQ(std::count(before.begin(), before.end(), resident), 1);
  EXPECT_EQ(answer(*experts, ids_), model_.logits(ids_));
  const ExpertReport report = experts->resident()->report();
  EXPECT_EQ(report.slots, 9);
  EXPECT_EQ(report.resizes, 2u);
}

TEST_F(NeverCold, ARefusedResizeLeavesThePoolAsItWas) {
  const auto experts = runtime(12, 6);
  answer(*experts, ids_);
  ResidentExperts& resident = *experts->resident();
  const std::vector<Resident> before = resident.residency();
  const size_t allocated = model_.device->allocated_bytes();
  using enum ErrorCode;
  expect_error(kInvalidArgument, {"--expert-slots 1", "at least 2"}, [&] { resident.resize(1); });
  expect_error(kInvalidArgument, {"--expert-slots 25", "only 24 experts"}, [&] { resident.resize(25); });
  expect_error(kInvalidArgument, {"--prefill-ring 6", "within 5 slots"}, [&] { resident.resize(5); });
  model_.device->faults().add(Fault::kAllocation, "expert slots");
  expect_error(kOutOfMemory, {"expert slots", "refused"}, [&] { resident.resize(20); });
  EXPECT_EQ(resident.residency(), before);
  EXPECT_EQ(resident.slots(), 12);
  EXPECT_EQ(model_.device->allocated_bytes(), allocated);
  EXPECT_EQ(answer(*experts, ids_), model_.logits(ids_));
  EXPECT_EQ(resident.report().resizes, 0u);
}

TEST_F(NeverCold, NothingIsResizedOrFilledInsideAForward) {
  const auto experts = runtime(12);
  ResidentExperts& resident = *experts->resident();
  Session session(*experts, {.capacity_tokens = 64});
  int refusals = 0;
  session.between_layers([&] {
    expect_error(ErrorCode::kInvalidArgument, {"resize", "inside a forward"}, [&] { resident.resize(20); });
    expect_error(ErrorCode::kInvalidArgument, {"inside a forward"}, [&] { resident.fill_idle(1 << 20); });
    ++refusals;
  });
  EXPECT_EQ(values(session.prefill(ids_)), model_.logits(ids_));
  EXPECT_EQ(refusals, 2);
  EXPECT_EQ(resident.slots(), 12);
}

}  // namespace
}  // namespace sluice::testing
