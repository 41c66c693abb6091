// Layers of two row layouts: a pool each, which grow together or not at all.
#include "experts/expert_state.h"

#include <gtest/gtest.h>

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
      rows.rows = device_->allocate(8 * row_bytes, "rows");
      rows_.push_back(std::move(rows));
    }
    ExpertSettings settings;
    settings.slots = 8;
    state_ = std::make_unique<ExpertState>(*device_, *stream_, rows_, ExpertShape{2, 8, 2, 1}, settings, 4);
  }
  void expect_sizes(int64_t slots) {
    ASSERT_EQ(state_->pools.size(), 2u);
    for (const auto& pool : state_->pools) {
      EXPECT_EQ(pool->slots, slots);
      EXPECT_EQ(pool->bytes->bytes(), static_cast<size_t>(slots) * pool->layout.row_bytes);
      EXPECT_EQ(pool->map.view().header->slots, slots);
    }
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::vector<LayerRows> rows_;
  std::unique_ptr<ExpertState> state_;
};

TEST_F(TwoPools, ShareTheSlotsAndGrowAndShrinkTogether) {
  expect_sizes(4);
  state_->resize(12);
  expect_sizes(6);
  state_->resize(6);
  expect_sizes(3);
}

TEST_F(TwoPools, StayAsTheyAreWhereOneOfThemIsRefused) {
  device_->faults().add(Fault::kAllocation, "expert slots", 2);
  const size_t before = device_->allocated_bytes();
  testing::expect_error(ErrorCode::kOutOfMemory, {"expert slots"}, [&] { state_->resize(12); });
  expect_sizes(4);
  EXPECT_EQ(device_->allocated_bytes(), before);
}

}  // namespace
}  // namespace sluice
