// The audit names every kind of damage, and only damage.
#include "experts/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "experts/gather.h"
#include "experts/slot_functions.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Two MoE layers of 8 experts of 64 bytes in 8 slots, some of them filled.
class Audit : public ::testing::Test {
 protected:
  Audit() : device_(make_host_device(1)), stream_(device_->make_stream()) {
    for (int layer = 0; layer < 2; ++layer) {
      LayerRows rows;
      rows.layout.row_bytes = kRow;
      rows.experts = 8;
      rows.scalars.assign(8 * kScalarsPerExpert, 1.0f);
      rows.rows = device_->allocate(8 * kRow, "rows");
      for (size_t i = 0; i < 8 * kRow; ++i) {
        rows.rows.as<uint8_t>()[i] = static_cast<uint8_t>(i * 7 + static_cast<size_t>(layer) * 101);
      }
      rows_.push_back(std::move(rows));
    }
    ExpertSettings settings;
    settings.slots = 8;
    settings.audit_every = 1;
    state_ = std::make_unique<ExpertState>(*device_, *stream_, rows_, ExpertShape{2, 8, 2, 1}, settings, 4);
    fetch(0, {3, 5});
    fetch(1, {5, 0, 7});
  }
  ExpertPool& pool() { return *state_->pools[0]; }
  const SlotMapView& map() { return pool().map.view(); }
  int32_t slot_of(int32_t layer, int32_t expert) { return map().slot_of[map().flat(layer, expert)]; }
  void fetch(size_t l, std::vector<int32_t> ids) {
    const LayerState& layer = state_->layers[l];
    ASSERT_TRUE(slot_map::ensure(map(), static_cast<int32_t>(l), ids.data(), static_cast<int64_t>(ids.size()),
                                 layer.demand->plan)
                    .ok());
    state_->note(SlotWrite::kDemand, layer, layer.demand->plan);
    gather_rows(*stream_, "fetch", layer.demand->plan, layer.rows->rows.as<std::byte>(), pool().slot(0),
                kRow);
  }
  AuditResult run() {
    AuditResult result;
    audit(*stream_, *state_, pool(), &result);
    return result;
  }

  static constexpr size_t kRow = 64;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::vector<LayerRows> rows_;
  std::unique_ptr<ExpertState> state_;
};

TEST_F(Audit, FindsNothingInAHealthyPool) {
  const AuditResult result = run();
  EXPECT_EQ(result.slots_checked, 5);
  EXPECT_EQ(result.violations, 0);
}

TEST_F(Audit, NamesASlotOfWhichOneBitIsWrong) {
  for (const size_t at : {size_t{0}, kRow / 2, kRow - 1}) {
    std::byte& byte = pool().slot(slot_of(1, 7))[at];
    byte ^= std::byte{0x10};
    const AuditResult result = run();
    EXPECT_EQ(result.violations, 1);
    EXPECT_THAT(describe(result, pool()), HasSubstr("1 violation in 5 held slots"));
    EXPECT_THAT(describe(result, pool()), HasSubstr("slot 4 (MoE layer 1, expert 7)"));
    byte ^= std::byte{0x10};
  }
  EXPECT_EQ(run().violations, 0);
}

TEST_F(Audit, NamesTheLastWritersOfASlotNewestFirst) {
  pool().log->note_range(*stream_, SlotWrite::kRegion, 0, 2);
  fetch(0, {3, 5, 1, 2, 4});  // three more experts take the empty slots
  pool().slot(slot_of(0, 5))[3] ^= std::byte{1};
  pool().slot(slot_of(0, 4))[3] ^= std::byte{1};
  const std::string text = describe(run(), pool());
  EXPECT_THAT(text,
              HasSubstr("slot 1 (MoE layer 0, expert 5), last written by lent to a pass #7, miss #2 (MoE "
                        "layer 0, expert 5)"));
  EXPECT_THAT(text,
              HasSubstr("slot 7 (MoE layer 0, expert 4), last written by miss #10 (MoE layer 0, expert 4)"));
}

TEST_F(Audit, KeepsTheLastFourWritersOfASlot) {
  for (int i = 0; i < 6; ++i) pool().log->note_range(*stream_, SlotWrite::kRegion, 2, 1);
  const SlotHistory& history = pool().log->histories()[2];
  for (size_t i = 0; i < history.size(); ++i) EXPECT_EQ(history[i].sequence, 11 - static_cast<int64_t>(i));
}

TEST_F(Audit, EmptySlotsMayHoldAnything) {
  std::memset(pool().slot(7), 0x55, kRow);
  EXPECT_EQ(run().violations, 0);
}

TEST_F(Audit, NamesAnOwnerThatTheOtherMapDoesNotKnow) {
  map().slot_of[map().flat(0, 5)] = -1;
  const AuditResult result = run();
  EXPECT_EQ(result.violations, 1);
  EXPECT_THAT(describe(result, pool()), HasSubstr("slot 1 (MoE layer 0, expert 5)"));
}

TEST_F(Audit, NamesAnExpertThatIsMappedToAnothersSlot) {
  map().slot_of[map().flat(1, 2)] = slot_of(0, 3);  // a hit would compute with the wrong expert
  EXPECT_THAT(describe(run(), pool()), HasSubstr("slot 0 (MoE layer 1, expert 2)"));
  map().slot_of[map().flat(1, 2)] = 6;  // an empty slot
  EXPECT_THAT(describe(run(), pool()), HasSubstr("slot 6 (MoE layer 1, expert 2)"));
}

TEST_F(Audit, NamesNumbersThatAreNoSlotAndNoExpert) {
  map().slot_of[map().flat(1, 2)] = 900;
  EXPECT_THAT(describe(run(), pool()), HasSubstr("slot 900 (MoE layer 1, expert 2)"));
  map().slot_of[map().flat(1, 2)] = -1;
  map().owner_of[6] = 16;
  EXPECT_THAT(describe(run(), pool()), HasSubstr("slot 6 (owner 16, which is no expert)"));
}

TEST_F(Audit, CountsAllAndNamesTheFirstEight) {
  for (int32_t expert = 0; expert < 8; ++expert) map().slot_of[map().flat(0, expert)] = 7;
  std::memset(pool().slot(slot_of(1, 0)), 0, kRow);
  const AuditResult result = run();
  EXPECT_EQ(result.violations, 2 + 1 + 8);  // two owners forgotten, one row, eight wrong entries
  const std::string text = describe(result, pool());
  EXPECT_THAT(text, HasSubstr("11 violations"));
  EXPECT_THAT(text, HasSubstr("slot 7 (MoE layer 0, expert 4)"));
  EXPECT_THAT(text, Not(HasSubstr("slot 7 (MoE layer 0, expert 5)")));
}

}  // namespace
}  // namespace sluice
