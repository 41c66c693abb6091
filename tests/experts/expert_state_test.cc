// Layers of two row layouts: a pool each, which grow together or not at all.
#include "experts/expert_state.h"

#include <gtest/gtest.h>

#include <array>

#include "base/expect_error.h"

namespace sluice {
namespace {

class TwoPools : public ::testing::Test {
 protected:
  TwoPools() : device_(make_host_device(1)), stream_(device_->make_stream()) {
    for (const size_t row_bytes : {size_t{64}, size_t{128}}) {
      LayerRows rows;
      rows.layout.row_bytes = row_bytes;
      rows.layout.intermediate = static_cast<int64_t>(row_bytes);
      rows.experts = 8;
      rows.scalars.assign(8 * kScalarsPerExpert, 1.0f);
      rows.rows = device_->allocate(8 * row_bytes, "rows");
      rows_.push_back(std::move(rows));
    }
    ExpertSettings settings;
    settings.slots = 8;
    state_ = std::make_unique<ExpertState>(*device_, *stream_, rows_, ExpertShape{2, 8, 2, 1}, settings, 4);
  }
  void expect_sizes(int64_t first, int64_t second) {
    ASSERT_EQ(state_->pools.size(), 2u);
    EXPECT_EQ(state_->slots(), first + second);
    for (size_t p = 0; p < 2; ++p) {
      const ExpertPool& pool = *state_->pools[p];
      const int64_t slots = p == 0 ? first : second;
      EXPECT_EQ(pool.slots, slots);
      EXPECT_EQ(pool.bytes->bytes(), static_cast<size_t>(slots) * pool.layout.row_bytes);
      EXPECT_EQ(pool.map.view().header->slots, slots);
    }
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::vector<LayerRows> rows_;
  std::unique_ptr<ExpertState> state_;
};

TEST_F(TwoPools, ShareTheSlotsAndGrowAndShrinkTogether) {
  expect_sizes(4, 4);
  state_->resize(12);
  expect_sizes(6, 6);
  state_->resize(6);
  expect_sizes(3, 3);
}

TEST_F(TwoPools, HaveAsManySlotsTogetherAsWasSaid) {
  for (int64_t slots = 4; slots <= 16; ++slots) {
    state_->resize(slots);
    expect_sizes((slots + 1) / 2, slots / 2);
  }
}

TEST_F(TwoPools, EachNeedTheSlotsOfADecodeStep) {
  testing::expect_error(ErrorCode::kInvalidArgument, {"3 expert slots", "at least 4", "2 layouts"},
                        [&] { state_->resize(3); });
  expect_sizes(4, 4);
}

TEST_F(TwoPools, StayAsTheyAreWhereOneOfThemIsRefused) {
  device_->faults().add(Fault::kAllocation, "expert slots", 2);
  const size_t before = device_->allocated_bytes();
  testing::expect_error(ErrorCode::kOutOfMemory, {"expert slots"}, [&] { state_->resize(12); });
  expect_sizes(4, 4);
  EXPECT_EQ(device_->allocated_bytes(), before);
}

TEST(PoolsOfUnequalShares, FollowTheirNumbersOfLayersAndFillUp) {
  // Five layers of one layout and one of another; 8 experts each.
  const auto device = make_host_device(1);
  const auto stream = device->make_stream();
  std::vector<LayerRows> rows;
  for (int l = 0; l < 6; ++l) {
    LayerRows& layer = rows.emplace_back();
    layer.layout.row_bytes = l == 3 ? 128 : 64;
    layer.layout.intermediate = static_cast<int64_t>(layer.layout.row_bytes);
    layer.experts = 8;
    layer.scalars.assign(8 * kScalarsPerExpert, 1.0f);
    layer.rows = device->allocate(8 * layer.layout.row_bytes, "rows");
  }
  ExpertSettings settings;
  settings.slots = 24;
  ExpertState state(*device, *stream, rows, ExpertShape{6, 8, 2, 1}, settings, 4);
  const std::vector<std::array<int64_t, 3>> expected = {{24, 20, 4}, {4, 2, 2},   {7, 5, 2},   {13, 11, 2},
                                                        {15, 13, 2}, {16, 13, 3}, {47, 39, 8}, {48, 40, 8}};
  for (const auto& [slots, first, second] : expected) {
    state.resize(slots);
    EXPECT_EQ(state.pools[0]->slots, first) << slots;
    EXPECT_EQ(state.pools[1]->slots, second) << slots;
  }
}

}  // namespace
}  // namespace sluice
