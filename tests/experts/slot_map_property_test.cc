// Long random runs of mixed operations: the fast slot map equals the reference, element by element.
#include <gtest/gtest.h>

#include <cstring>
#include <iostream>
#include <random>
#include <string>

#include "experts/slot_map_fixture.h"
#include "experts/slot_map_ref.h"

namespace sluice {
namespace {

struct RunCase {
  const char* name;
  SlotMapShape shape;
  int32_t slots;
  int32_t batch;  // most ids of one call
  int32_t steps;
};

std::ostream& operator<<(std::ostream& out, const RunCase& run) { return out << run.name; }

class SlotMapRun : public testing::TestWithParam<std::tuple<RunCase, SlotPolicy>> {
 protected:
  SlotMapRun()
      : run_(std::get<0>(GetParam())),
        shape_(with_policy(run_.shape, std::get<1>(GetParam()))),
        fast_(shape_, run_.slots),
        ref_(shape_, run_.slots),
        small_fast_(2),
        small_ref_(2) {}

  static SlotMapShape with_policy(SlotMapShape shape, SlotPolicy policy) {
    shape.policy = policy;
    return shape;
  }

  int32_t below(int64_t n) { return static_cast<int32_t>(random_() % static_cast<uint64_t>(n)); }
  bool chance(int32_t percent) { return below(100) < percent; }
  // Mostly the layers' order, so that runs look like decode; sometimes any.
  int32_t next_layer() {
    layer_ = chance(90) ? (layer_ + 1) % shape_.layers : below(shape_.layers);
    return chance(99) ? layer_ : shape_.layers;
  }
  // Skewed ids with repeats and padding, now and then one that is no expert.
  Ids random_ids(int32_t most) {
    Ids ids(static_cast<size_t>(below(most + 1)));
    for (int32_t& id : ids) {
      const int32_t range = chance(60) ? std::max(1, shape_.experts / 8) : shape_.experts;
      id = chance(8) ? -1 : below(range);
    }
    if (!ids.empty() && chance(1))
      ids[static_cast<size_t>(below(ids.size()))] = chance(50) ? shape_.experts : -2;
    return ids;
  }
  // One in fifty calls gets a plan of two entries.
  void choose_plans() {
    const bool small = chance(2);
    fast_plan_ = small ? &small_fast_ : &fast_.buffer();
    ref_plan_ = small ? &small_ref_ : &ref_.buffer();
    fast_plan_->count = ref_plan_->count = 0;  // not all operations write a plan
  }

  template <class Call>
  void both(const char* what, const Call& call) {
    what_ = what;
    last_fast_ = call(true, fast_.view(), fast_plan_->plan());
    const SlotStatus last_ref = call(false, ref_.view(), ref_plan_->plan());
    ASSERT_EQ(last_fast_, last_ref) << what << ": " << describe(last_fast_) << " / " << describe(last_ref);
    failures_ += !last_fast_.ok();
  }

  void step();
  void ensure();
  void capped();
  void predict();
  void region();
  void rare();
  void compare(int32_t number);

  const RunCase run_;
  const SlotMapShape shape_;
  TestMap fast_, ref_;
  PlanBuffer small_fast_, small_ref_;
  PlanBuffer* fast_plan_ = nullptr;
  PlanBuffer* ref_plan_ = nullptr;
  std::mt19937_64 random_;
  int32_t layer_ = 0, failures_ = 0;
  SlotStatus last_fast_;
  std::string what_;
};

#define BOTH(name, arguments)                                                                 \
  both(#name, [&](bool fast, const SlotMapView& map, [[maybe_unused]] const CopyPlan& plan) { \
    return fast ? slot_map::name arguments : slot_map_ref::name arguments;                    \
  })

void SlotMapRun::ensure() {
  const int32_t layer = next_layer();
  const Ids ids = random_ids(run_.batch);
  Ids results[2];
  both("ensure", [&](bool fast, const SlotMapView& map, const CopyPlan& plan) {
    Ids& mine = results[fast] = ids;
    const auto n = static_cast<int64_t>(mine.size());
    return fast ? slot_map::ensure(map, layer, mine.data(), n, plan)
                : slot_map_ref::ensure(map, layer, mine.data(), n, plan);
  });
  ASSERT_EQ(results[0], results[1]);
  if (!last_fast_.ok()) {
    ASSERT_EQ(results[1], ids);
    return;
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    ASSERT_EQ(results[1][i], ids[i] < 0 ? -1 : fast_.slot_of(layer, ids[i]));
  }
}

void SlotMapRun::capped() {
  const int32_t layer = next_layer();
  const Ids ids = random_ids(run_.batch);
  const FetchRule rule = chance(50) ? FetchRule::at_most(below(6)) : FetchRule::fraction(below(101) / 100.0);
  Ids results[2], on_cpu[2];
  both("ensure_capped", [&](bool fast, const SlotMapView& map, const CopyPlan& plan) {
    Ids& mine = results[fast] = ids;
    Ids& cpu = on_cpu[fast] = Ids(ids.size(), -9);
    const auto n = static_cast<int64_t>(mine.size());
    return fast ? slot_map::ensure_capped(map, layer, mine.data(), n, rule, cpu.data(), plan)
                : slot_map_ref::ensure_capped(map, layer, mine.data(), n, rule, cpu.data(), plan);
  });
  ASSERT_EQ(results[0], results[1]);
  ASSERT_EQ(on_cpu[0], on_cpu[1]);
  for (size_t i = 0; last_fast_.ok() && i < ids.size(); ++i) {
    // Each route is computed once: by a slot or by the CPU.
    ASSERT_EQ(ids[i] >= 0, (results[1][i] >= 0) != (on_cpu[1][i] >= 0));
  }
}

void SlotMapRun::predict() {
  const int32_t layer = next_layer();
  const Ids ids = random_ids(std::min(run_.batch, 24));
  const auto n = static_cast<int64_t>(ids.size());
  const int32_t most = below(8);
  const int64_t clock = fast_.view().header->clock;
  BOTH(install_predictions, (map, layer, ids.data(), n, most, plan));
  ASSERT_EQ(fast_.view().header->clock, clock);
}

void SlotMapRun::region() {
  const int32_t slots = fast_.view().header->slots;
  const int32_t layer = next_layer();
  const int32_t kind = below(12);
  if (kind < 2) {
    Ids layers;
    for (int32_t i = 0; i < shape_.layers; ++i) {
      if (chance(50)) layers.push_back(i);
    }
    if (chance(2)) layers.push_back(shape_.layers);
    const int32_t size = chance(3) ? slots + 1 : below(std::max(1, slots / 2));
    const Ids* list = chance(30) ? nullptr : &layers;
    const auto n = static_cast<int64_t>(layers.size());
    BOTH(begin_region, (map, size, list == nullptr ? nullptr : list->data(), n));
  } else if (kind < 3 && chance(50)) {
    const int32_t count = below(slots + 2);
    BOTH(leave_evictable, (map, count));
  } else if (kind < 3) {
    BOTH(end_region, (map));
  } else if (kind < 6) {
    BOTH(release_layer, (map, layer));
  } else if (kind < 8) {
    const int32_t first = below(slots + 2) - 1, count = below(slots / 4 + 2) - (chance(5) ? 2 : 0);
    BOTH(invalidate, (map, first, count));
  } else if (kind < 10) {
    const int32_t floor = fast_.view().header->floor;
    const int32_t first =
        chance(70) && floor >= shape_.experts ? 0 : below(std::max(1, slots - shape_.experts + 2));
    BOTH(materialise, (map, layer, first, plan));
  } else {
    const Ids ids = random_ids(run_.batch);
    const auto n = static_cast<int64_t>(ids.size());
    Ids lies(static_cast<size_t>(shape_.experts));
    const int32_t end = std::max(1, fast_.view().header->floor + (chance(3) ? 1 : 0));
    for (int32_t& slot : lies) slot = chance(40) ? -1 : below(end);
    const int32_t* where = chance(50) ? nullptr : lies.data();
    BOTH(adopt, (map, layer, ids.data(), n, where, plan));
  }
}

void SlotMapRun::rare() {
  const int32_t kind = below(10);
  if (kind < 4) {
    const int32_t slots = chance(70) ? run_.slots : 1 + below(shape_.max_slots + 2);
    BOTH(resize, (map, slots, std::max(1, run_.slots / 2)));
  } else if (kind < 5 && chance(20)) {
    BOTH(reset, (map, run_.slots));
  } else {
    Ids ids = random_ids(run_.batch);  // of several layers, with the bad ones that random_ids() makes
    for (int32_t& id : ids) {
      if (id >= 0) id += below(shape_.layers) * shape_.experts;
    }
    const auto n = static_cast<int64_t>(ids.size());
    BOTH(fill, (map, ids.data(), n, plan));
  }
}

void SlotMapRun::step() {
  choose_plans();
  const int32_t kind = below(100);
  if (kind < 50) return ensure();
  if (kind < 65) return capped();
  if (kind < 83) return predict();
  if (kind < 97) return region();
  rare();
}

void SlotMapRun::compare(int32_t number) {
  ASSERT_EQ(fast_plan_->entries(), ref_plan_->entries()) << "plans, step " << number << ", " << what_;
  const size_t bytes = fast_.view().core_bytes;
  if (std::memcmp(fast_.view().header, ref_.view().header, bytes) != 0) {
    FAIL() << "maps differ after step " << number << ", " << what_;
  }
  // The index is checked in full; the larger maps not after each step.
  if (shape_.max_slots > 500 && number % 16 != 0) return;
  ASSERT_EQ(fast_.fault(), "") << "after step " << number << ", " << what_;
}

TEST_P(SlotMapRun, EqualsTheReferenceOnRandomOperations) {
  const uint64_t seed = 20261129;
  std::cout << "seed " << seed << std::endl;  // now: a broken check aborts
  random_.seed(seed);
  int32_t fetched = 0;
  for (int32_t number = 0; number < run_.steps; ++number) {
    ASSERT_NO_FATAL_FAILURE(step());
    ASSERT_NO_FATAL_FAILURE(compare(number));
    fetched += fast_plan_->count;
  }
  // The run has moved experts, and has met refusals without being made of them.
  EXPECT_GT(fetched, run_.steps / 10);
  EXPECT_GT(failures_, 0);
  EXPECT_LT(failures_, run_.steps / 2);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, SlotMapRun,
    testing::Combine(
        testing::Values(
            RunCase{"SmallPool", {.layers = 4, .experts = 16, .max_slots = 64}, 24, 12, 20000},
            RunCase{"AsManySlotsAsIdsOfACall", {.layers = 3, .experts = 8, .max_slots = 8}, 8, 8, 20000},
            RunCase{"AllResident", {.layers = 3, .experts = 20, .max_slots = 60}, 60, 20, 20000},
            RunCase{"OneLayer", {.layers = 1, .experts = 70, .max_slots = 37}, 37, 30, 20000},
            RunCase{"OneSlot", {.layers = 2, .experts = 3, .max_slots = 1}, 1, 2, 5000},
            RunCase{"ManyExperts", {.layers = 5, .experts = 384, .max_slots = 1500}, 900, 400, 1500},
            RunCase{"LargePool", {.layers = 24, .experts = 128, .max_slots = 3072}, 1000, 64, 2500}),
        testing::Values(SlotPolicy::kLru, SlotPolicy::kScored)),
    [](const auto& test) {
      const bool lru = std::get<1>(test.param) == SlotPolicy::kLru;
      return std::string(std::get<0>(test.param).name) + (lru ? "Lru" : "Scored");
    });

}  // namespace
}  // namespace sluice
