// The operations around the slot map on the GPU against the host's, on random input.
#include <numeric>

#include "experts/arrivals.h"
#include "experts/forecast.h"
#include "experts/gather.h"
#include "experts/slot_ops.h"
#include "experts/stream_counters.h"
#include "experts/transient.h"
#include "gpu/gpu.h"
#include "random_values.h"

namespace sluice::testing {
namespace {

class CudaExpertOps : public ::testing::Test {
 protected:
  CudaExpertOps()
      : host_device_(make_host_device(2)),
        host_(host_device_->make_stream()),
        cuda_(gpu().make_stream("test", Priority::kNormal)) {
    std::cout << random_.trace() << "\n";
  }

  std::vector<int32_t> ids(int64_t n, int64_t below) {
    std::vector<int32_t> values(static_cast<size_t>(n));
    for (int32_t& value : values) {
      value = random_.integer(0, 9) == 0 ? -1 : static_cast<int32_t>(random_.integer(0, below - 1));
    }
    return values;
  }
  template <class T>
  std::vector<T> read(const T* source, size_t count) {
    std::vector<T> values(count);
    cuda_->copy("test output", values.data(), source, count * sizeof(T));
    gpu().wait(*cuda_, "test");
    return values;
  }

  RandomValues random_{20261130};
  std::unique_ptr<Device> host_device_;
  std::unique_ptr<Stream> host_, cuda_;
};

/// One counter on each side.
template <class Counters>
struct Both {
  explicit Both(Stream& stream) : there(stream, {Counters{}}) {}
  Counters here{};
  GpuArray<Counters> there;
};

TEST_F(CudaExpertOps, ForecastsAreRankedAndCountedAlike) {
  for (const auto& [experts, top_k] :
       {std::pair<int64_t, int64_t>{8, 2}, {64, 6}, {256, 8}, {1000, 10}, {5, 5}}) {
    Both<ForecastCounters> counters(*cuda_);
    for (const int64_t rows : {1, 3, 8, 20}) {
      std::vector<float> logits = random_.reals(rows * experts);
      for (size_t i = 0; i < logits.size(); i += 3) logits[i] = 0.5f;  // ties
      std::vector<int32_t> forecast(static_cast<size_t>(experts));
      const std::vector<int32_t> routed = ids(rows * top_k, experts);
      GpuArray<float> gl(*cuda_, logits);
      GpuArray<int32_t> gf(*cuda_, forecast), gi(*cuda_, routed);
      rank_forecast(*host_, logits.data(), rows, experts, top_k, forecast.data());
      rank_forecast(*cuda_, gl.data(), rows, experts, top_k, gf.data());
      ASSERT_EQ(gf.read(), forecast) << experts << " experts, " << rows << " rows";
      const auto n = static_cast<int64_t>(routed.size());
      count_forecast(*host_, routed.data(), n, experts, forecast.data(), &counters.here);
      count_forecast(*cuda_, gi.data(), n, experts, gf.data(), counters.there.data());
    }
    const ForecastCounters got = counters.there.read()[0];
    EXPECT_EQ(got.calls, counters.here.calls);
    EXPECT_EQ(got.wanted, counters.here.wanted);
    EXPECT_EQ(got.at_rank, counters.here.at_rank);
    EXPECT_GT(got.wanted, 0u);
  }
}

/// A map with some residents on both sides, and a region below the floor.
struct Maps {
  static constexpr SlotMapShape kShape{.layers = 3, .experts = 100, .max_slots = 180};
  Maps(Device& host_device, Stream& host, Stream& cuda)
      : here(host_device, host, kShape, 150), there(gpu(), cuda, kShape, 150) {}
  SlotMap here, there;

  void fill(Stream& host, Stream& cuda, const std::vector<int32_t>& experts) {
    slot_ops::begin_region(host, here.view(), 40, nullptr, 0);
    std::vector<int32_t> slots(200), rows(200);
    int32_t count = 0;
    std::vector<int32_t> copy = experts;
    slot_ops::ensure(host, here.view(), 1, copy.data(), static_cast<int64_t>(copy.size()),
                     {slots.data(), rows.data(), &count, 200});
    cuda.copy("state", there.view().header, here.view().header, here.view().core_bytes);
    gpu().wait(cuda, "test");
  }
};

TEST_F(CudaExpertOps, TransientRoutesAndTheirCountersAreAlike) {
  constexpr int32_t kExperts = Maps::kShape.experts;
  Maps maps(*host_device_, *host_, *cuda_);
  maps.fill(*host_, *cuda_, {3, 5, 8, 13, 21, 34, 55, 89});
  Both<TransientCounters> counters(*cuda_);
  for (int round = 0; round < 40; ++round) {
    const std::vector<int32_t> routed = ids(random_.integer(0, 200), round % 2 == 0 ? kExperts : 20);
    const auto n = static_cast<int64_t>(routed.size());
    std::optional<FetchRule> rule;
    if (round % 3 == 1) rule = FetchRule::at_most(static_cast<int32_t>(random_.integer(0, 10)));
    if (round % 3 == 2) rule = FetchRule::fraction(0.3);
    const auto ring = static_cast<int32_t>(random_.integer(1, kExperts));
    std::vector<int32_t> row_of(kExperts, -9), cpu(routed.size(), -9), plan(2 * kExperts + 1);
    GpuArray<int32_t> gi(*cuda_, routed), gr(*cuda_, row_of), gc(*cuda_, cpu), gp(*cuda_, plan);
    const auto plan_at = [](int32_t* words) {
      return CopyPlan{words + 1, words + 1 + kExperts, words, kExperts};
    };
    route_transient(*host_, maps.here.view(), 1, routed.data(), n, 7, ring, row_of.data(),
                    plan_at(plan.data()), &counters.here, rule, cpu.data());
    route_transient(*cuda_, maps.there.view(), 1, gi.data(), n, 7, ring, gr.data(), plan_at(gp.data()),
                    counters.there.data(), rule, gc.data());
    ASSERT_EQ(gr.read(), row_of) << "round " << round;
    if (rule) {
      ASSERT_EQ(gc.read(), cpu) << "round " << round;
    }
    const std::vector<int32_t> got = gp.read();
    ASSERT_EQ(got[0], plan[0]);
    for (int32_t i = 0; i < got[0]; ++i) {
      ASSERT_EQ(got[static_cast<size_t>(1 + i)], plan[static_cast<size_t>(1 + i)]);
      ASSERT_EQ(got[static_cast<size_t>(1 + kExperts + i)], plan[static_cast<size_t>(1 + kExperts + i)]);
    }
  }
  const TransientCounters got = counters.there.read()[0];
  EXPECT_EQ(got.calls, counters.here.calls);
  EXPECT_EQ(got.routed, counters.here.routed);
  EXPECT_EQ(got.distinct, counters.here.distinct);
  EXPECT_EQ(got.misses, counters.here.misses);
  EXPECT_EQ(got.cpu, counters.here.cpu);
  EXPECT_EQ(got.overflows, counters.here.overflows);
  EXPECT_GT(got.cpu, 0u);
  EXPECT_GT(got.overflows, 0u);
}

TEST_F(CudaExpertOps, ArrivalsAndStreamedExpertsAreCountedAlike) {
  constexpr int32_t kMost = 16;
  Both<ArrivalCounters> arrivals(*cuda_);
  for (int round = 0; round < 20; ++round) {
    const std::vector<int32_t> routed = ids(24, 30);
    std::vector<int32_t> predicted(2 * kMost + 1), demand(2 * kMost + 1);
    for (std::vector<int32_t>* plan : {&predicted, &demand}) {
      (*plan)[0] = static_cast<int32_t>(random_.integer(0, kMost));
      std::vector<int32_t> experts(30);
      std::iota(experts.begin(), experts.end(), 0);
      for (int32_t i = 0; i < (*plan)[0]; ++i) {
        const auto at = static_cast<size_t>(random_.integer(0, static_cast<int64_t>(experts.size()) - 1));
        (*plan)[static_cast<size_t>(1 + kMost + i)] = experts[at];
        experts.erase(experts.begin() + static_cast<int64_t>(at));
      }
    }
    const auto plan_at = [](int32_t* words) { return CopyPlan{words + 1, words + 1 + kMost, words, kMost}; };
    GpuArray<int32_t> gi(*cuda_, routed), gp(*cuda_, predicted), gd(*cuda_, demand);
    count_arrivals(*host_, routed.data(), 24, plan_at(predicted.data()), plan_at(demand.data()),
                   &arrivals.here);
    count_arrivals(*cuda_, gi.data(), 24, plan_at(gp.data()), plan_at(gd.data()), arrivals.there.data());
  }
  const ArrivalCounters got = arrivals.there.read()[0];
  EXPECT_EQ(got.wanted, arrivals.here.wanted);
  EXPECT_EQ(got.again, arrivals.here.again);
  EXPECT_GT(got.wanted, 0u);
  EXPECT_GT(got.again, 0u);

  Maps maps(*host_device_, *host_, *cuda_);
  maps.fill(*host_, *cuda_, {0, 31, 32, 33, 63, 64, 99});
  ExpertSet streamed(Maps::kShape.experts);
  for (const int32_t e : {0, 1, 32, 64, 98, 99}) streamed.insert(e);
  Both<StreamCounters> again(*cuda_);
  count_streamed_again(*host_, maps.here.view(), 1, streamed, &again.here);
  count_streamed_again(*cuda_, maps.there.view(), 1, streamed, again.there.data());
  EXPECT_EQ(again.here.again, 4u);
  EXPECT_EQ(again.there.read()[0].again, 4u);
}

TEST_F(CudaExpertOps, RowsAreGatheredFromLockedHostMemoryAndInsideThePool) {
  for (const size_t row_bytes : {size_t{16}, size_t{4096}, size_t{27648}, size_t{1769472}}) {
    constexpr int32_t kRows = 12, kSlots = 9;
    Buffer rows = gpu().allocate(kRows * row_bytes, "test", MemoryKind::kPinned);
    for (size_t i = 0; i < rows.bytes() / 4; ++i)
      rows.as<uint32_t>()[i] = static_cast<uint32_t>(i * 2654435761u);
    const Buffer slots = gpu().allocate(kSlots * row_bytes, "test");
    const std::vector<int32_t> plan = {5, 7, 0, 8, 2, 4, 11, 3, 0, 9, 6};  // count, 5 slots, 5 rows
    GpuArray<int32_t> gp(*cuda_, plan);
    gather_rows(*cuda_, "gather", {gp.data() + 1, gp.data() + 6, gp.data(), 5}, rows.as<std::byte>(),
                slots.as<std::byte>(), row_bytes);
    const std::vector<int32_t> move = {1, 1, 8};  // slot 8 to slot 1
    GpuArray<int32_t> gm(*cuda_, move);
    gather_rows(*cuda_, "adopt", {gm.data() + 1, gm.data() + 2, gm.data(), 1}, slots.as<std::byte>(),
                slots.as<std::byte>(), row_bytes);
    const std::vector<std::byte> got = read(slots.as<std::byte>(), slots.bytes());
    const auto expect_row = [&](int32_t slot, int32_t row) {
      EXPECT_TRUE(std::equal(got.begin() + static_cast<int64_t>(static_cast<size_t>(slot) * row_bytes),
                             got.begin() + static_cast<int64_t>(static_cast<size_t>(slot + 1) * row_bytes),
                             rows.as<std::byte>() + static_cast<size_t>(row) * row_bytes))
          << row_bytes << " bytes, slot " << slot;
    };
    for (size_t i = 0; i < 5; ++i) expect_row(plan[1 + i], plan[6 + i]);
    expect_row(1, 0);
  }
}

}  // namespace
}  // namespace sluice::testing
