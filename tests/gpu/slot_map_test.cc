// The kernels on a slot map against the reference, element by element, on random states: each step starts
// both from the reference's bytes.
#include <cstring>
#include <iostream>
#include <random>

#include "experts/slot_map_fixture.h"
#include "experts/slot_map_ref.h"
#include "experts/slot_ops.h"
#include "gpu/gpu.h"

namespace sluice::testing {
namespace {

struct Shape {
  const char* name;
  SlotMapShape shape;
  int32_t slots, batch, steps;
};

class CudaSlotMap : public ::testing::TestWithParam<std::tuple<Shape, SlotPolicy>> {
 protected:
  CudaSlotMap()
      : run_(std::get<0>(GetParam())),
        shape_([this] {
          SlotMapShape shape = run_.shape;
          shape.policy = std::get<1>(GetParam());
          return shape;
        }()),
        ref_(shape_, run_.slots),
        stream_(gpu().make_stream("test", Priority::kNormal)),
        cuda_(gpu(), *stream_, shape_, run_.slots),
        words_(gpu().allocate_array<int32_t>(4 * kWords, "test")) {}

  static constexpr int64_t kWords = 4096;
  int32_t below(int64_t n) { return static_cast<int32_t>(random_() % static_cast<uint64_t>(n)); }
  bool chance(int32_t percent) { return below(100) < percent; }
  int32_t next_layer() {
    layer_ = chance(90) ? (layer_ + 1) % shape_.layers : below(shape_.layers);
    return chance(99) ? layer_ : shape_.layers;
  }
  Ids random_ids(int32_t most) {
    Ids ids(static_cast<size_t>(below(most + 1)));
    for (int32_t& id : ids)
      id = chance(8) ? -1 : below(chance(60) ? std::max(1, shape_.experts / 8) : shape_.experts);
    if (!ids.empty() && chance(1))
      ids[static_cast<size_t>(below(static_cast<int64_t>(ids.size())))] = shape_.experts;
    return ids;
  }

  // Device memory of the call: ids, other ids, a plan.
  int32_t* ids_there() { return words_.as<int32_t>(); }
  int32_t* more_there() { return words_.as<int32_t>() + kWords; }
  CopyPlan plan_there() {
    int32_t* words = words_.as<int32_t>() + 2 * kWords;
    return {words + 1, words + 1 + shape_.experts, words, static_cast<int32_t>(plan_.slots.size())};
  }
  void upload(int32_t* target, const Ids& values) {
    stream_->copy("ids", target, values.data(), values.size() * sizeof(int32_t));
  }
  Ids download(const int32_t* source, size_t count) {
    Ids values(count);
    stream_->copy("ids", values.data(), source, count * sizeof(int32_t));
    gpu().wait(*stream_, "test");
    return values;
  }
  void begin() {
    const SlotMapView& map = ref_.view();
    stream_->copy("state", cuda_.view().header, map.header, map.core_bytes);
    plan_.count = 0;
    stream_->copy("plan", plan_there().count, &plan_.count, sizeof(int32_t));
  }
  // What the operation on a stream does with the status of the function.
  void keep(const SlotStatus& status) {
    SlotMapHeader& header = *ref_.view().header;
    if (!status.ok() && header.status.ok()) header.status = status;
    failures_ += !status.ok();
    ok_ = status.ok();
  }
  void compare(const char* what) {
    const SlotMapView& want = ref_.view();
    std::vector<std::byte> bytes(want.bytes);
    stream_->copy("state", bytes.data(), cuda_.view().header, want.core_bytes);
    gpu().wait(*stream_, "test");
    const SlotMapView got = view_of(bytes.data(), shape_);
    const auto same = [&](const auto* a, const auto* b, size_t n) {
      return std::memcmp(a, b, n * sizeof(*a)) == 0;
    };
    const auto slots = static_cast<size_t>(shape_.max_slots);
    const auto ids = static_cast<size_t>(shape_.layers) * static_cast<size_t>(shape_.experts);
    ASSERT_EQ(describe(got.header->status), describe(want.header->status)) << what;
    ASSERT_TRUE(same(got.header, want.header, 1)) << what << ": header";
    ASSERT_TRUE(same(got.counters, want.counters, static_cast<size_t>(shape_.layers)))
        << what << ": counters";
    ASSERT_TRUE(same(got.last_use, want.last_use, slots)) << what << ": last_use";
    ASSERT_TRUE(same(got.used_step, want.used_step, slots)) << what << ": used_step";
    ASSERT_TRUE(same(got.recency, want.recency, ids)) << what << ": recency";
    ASSERT_TRUE(same(got.slot_of, want.slot_of, ids)) << what << ": slot_of";
    ASSERT_TRUE(same(got.owner_of, want.owner_of, slots)) << what << ": owner_of";
    ASSERT_TRUE(same(got.listed, want.listed, slots)) << what << ": listed";
    const CopyPlan there = plan_there();
    const Ids count = download(there.count, 1);
    ASSERT_EQ(count[0], plan_.count) << what;
    const auto n = static_cast<size_t>(count[0]);
    ASSERT_EQ(download(there.dst_slot, n), Ids(plan_.slots.begin(), plan_.slots.begin() + count[0])) << what;
    ASSERT_EQ(download(there.src_row, n), Ids(plan_.rows.begin(), plan_.rows.begin() + count[0])) << what;
    fetched_ += count[0];
    ref_.view().header->status = {};
  }

  void ensure(bool capped);
  void predict();
  void region();
  void rare();

  const Shape run_;
  const SlotMapShape shape_;
  TestMap ref_;
  std::unique_ptr<Stream> stream_;
  SlotMap cuda_;
  Buffer words_;
  PlanBuffer plan_{1};
  std::mt19937_64 random_;
  int32_t layer_ = 0, failures_ = 0, fetched_ = 0;
  bool ok_ = true;
};

void CudaSlotMap::ensure(bool capped) {
  const int32_t layer = next_layer();
  Ids ids = random_ids(run_.batch), cpu(ids.size(), -9);
  const auto n = static_cast<int64_t>(ids.size());
  const FetchRule rule = chance(50) ? FetchRule::at_most(below(6)) : FetchRule::fraction(below(101) / 100.0);
  upload(ids_there(), ids);
  begin();
  if (capped) {
    slot_ops::ensure_capped(*stream_, cuda_.view(), layer, ids_there(), n, rule, more_there(), plan_there());
    keep(slot_map_ref::ensure_capped(ref_.view(), layer, ids.data(), n, rule, cpu.data(), plan_.plan()));
  } else {
    slot_ops::ensure(*stream_, cuda_.view(), layer, ids_there(), n, plan_there());
    keep(slot_map_ref::ensure(ref_.view(), layer, ids.data(), n, plan_.plan()));
  }
  if (!ok_) std::fill(ids.begin(), ids.end(), -1);
  if (!ok_) std::fill(cpu.begin(), cpu.end(), -1);
  ASSERT_NO_FATAL_FAILURE(compare(capped ? "ensure_capped" : "ensure"));
  ASSERT_EQ(download(ids_there(), ids.size()), ids);
  if (capped) {
    ASSERT_EQ(download(more_there(), cpu.size()), cpu);
  }
}

void CudaSlotMap::predict() {
  const int32_t layer = next_layer(), most = below(8);
  const Ids ids = random_ids(std::min(run_.batch, 24));
  const auto n = static_cast<int64_t>(ids.size());
  upload(ids_there(), ids);
  upload(more_there(), {most});
  begin();
  slot_ops::install_predictions(*stream_, cuda_.view(), layer, ids_there(), n, more_there(), plan_there());
  keep(slot_map_ref::install_predictions(ref_.view(), layer, ids.data(), n, most, plan_.plan()));
  compare("install_predictions");
}

void CudaSlotMap::region() {
  const int32_t slots = ref_.view().header->slots, layer = next_layer();
  const SlotMapView &map = ref_.view(), &there = cuda_.view();
  switch (below(7)) {
    case 0: {
      Ids layers;
      for (int32_t i = 0; i < shape_.layers; ++i) {
        if (chance(50)) layers.push_back(i);
      }
      if (chance(2)) layers.push_back(shape_.layers);
      layers.reserve(1);  // a list of none is not the list of all
      const bool all = chance(30);
      const int32_t size = chance(3) ? slots + 1 : below(std::max(1, slots / 2));
      const auto n = static_cast<int64_t>(layers.size());
      upload(ids_there(), layers);
      begin();
      slot_ops::begin_region(*stream_, there, size, all ? nullptr : ids_there(), n);
      keep(slot_map_ref::begin_region(map, size, all ? nullptr : layers.data(), n));
      return compare("begin_region");
    }
    case 1: {
      const int32_t count = below(slots + 2);
      begin();
      slot_ops::leave_evictable(*stream_, there, count);
      keep(slot_map_ref::leave_evictable(map, count));
      return compare("leave_evictable");
    }
    case 2:
      if (!chance(50)) return;
      begin();
      slot_ops::end_region(*stream_, there);
      keep(slot_map_ref::end_region(map));
      return compare("end_region");
    case 3:
      begin();
      slot_ops::release_layer(*stream_, there, layer);
      keep(slot_map_ref::release_layer(map, layer));
      return compare("release_layer");
    case 4: {
      const int32_t first = below(slots + 2) - 1, count = below(slots / 4 + 2) - (chance(5) ? 2 : 0);
      begin();
      slot_ops::invalidate(*stream_, there, first, count);
      keep(slot_map_ref::invalidate(map, first, count));
      return compare("invalidate");
    }
    case 5: {
      const int32_t first = chance(70) ? 0 : below(std::max(1, slots - shape_.experts + 2));
      begin();
      slot_ops::materialise(*stream_, there, layer, first, plan_there());
      keep(slot_map_ref::materialise(map, layer, first, plan_.plan()));
      return compare("materialise");
    }
    default: {
      const Ids ids = random_ids(run_.batch);
      const auto n = static_cast<int64_t>(ids.size());
      Ids lies(static_cast<size_t>(shape_.experts));
      const int32_t end = std::max(1, map.header->floor + (chance(3) ? 1 : 0));
      for (int32_t& slot : lies) slot = chance(40) ? -1 : below(end);
      const bool given = chance(50);
      upload(ids_there(), ids);
      upload(more_there(), lies);
      begin();
      slot_ops::adopt(*stream_, there, layer, ids_there(), n, given ? more_there() : nullptr, plan_there());
      keep(slot_map_ref::adopt(map, layer, ids.data(), n, given ? lies.data() : nullptr, plan_.plan()));
      return compare("adopt");
    }
  }
}

void CudaSlotMap::rare() {
  const SlotMapView &map = ref_.view(), &there = cuda_.view();
  if (chance(40)) {
    const int32_t slots = chance(70) ? run_.slots : 1 + below(shape_.max_slots + 2);
    begin();
    slot_ops::resize(*stream_, there, slots, std::max(1, run_.slots / 2));
    keep(slot_map_ref::resize(map, slots, std::max(1, run_.slots / 2)));
    return compare("resize");
  }
  Ids ids = random_ids(std::min<int32_t>(run_.batch, shape_.experts));
  for (int32_t& id : ids) {
    if (id >= 0) id += below(shape_.layers) * shape_.experts;
  }
  const auto n = static_cast<int64_t>(ids.size());
  upload(ids_there(), ids);
  begin();
  slot_ops::fill(*stream_, there, ids_there(), n, plan_there());
  keep(slot_map_ref::fill(map, ids.data(), n, plan_.plan()));
  compare("fill");
}

TEST_P(CudaSlotMap, EqualsTheReferenceOnRandomOperations) {
  const uint64_t seed = 20261130;
  std::cout << "seed " << seed << std::endl;
  random_.seed(seed);
  for (int32_t step = 0; step < run_.steps; ++step) {
    plan_ = PlanBuffer(chance(2) ? std::min(2, shape_.experts) : shape_.experts);
    const int32_t kind = below(100);
    ASSERT_NO_FATAL_FAILURE(kind < 45   ? ensure(false)
                            : kind < 60 ? ensure(true)
                            : kind < 78 ? predict()
                            : kind < 96 ? region()
                                        : rare())
        << "step " << step;
  }
  EXPECT_GT(fetched_, run_.steps / 10);
  EXPECT_GT(failures_, 0);
  EXPECT_LT(failures_, run_.steps / 2);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, CudaSlotMap,
    ::testing::Combine(
        ::testing::Values(
            Shape{"SmallPool", {.layers = 4, .experts = 16, .max_slots = 64}, 24, 12, 2500},
            Shape{"AllResident", {.layers = 3, .experts = 20, .max_slots = 60}, 60, 20, 2000},
            Shape{"OneLayer", {.layers = 1, .experts = 70, .max_slots = 37}, 37, 30, 2000},
            Shape{"OneSlot", {.layers = 2, .experts = 3, .max_slots = 1}, 1, 2, 1000},
            Shape{"ManyExperts", {.layers = 5, .experts = 1024, .max_slots = 4000}, 2100, 400, 300},
            Shape{"LargePool", {.layers = 24, .experts = 128, .max_slots = 3072}, 1000, 64, 600}),
        ::testing::Values(SlotPolicy::kLru, SlotPolicy::kScored)),
    [](const auto& test) {
      const bool lru = std::get<1>(test.param) == SlotPolicy::kLru;
      return std::string(std::get<0>(test.param).name) + (lru ? "Lru" : "Scored");
    });

}  // namespace
}  // namespace sluice::testing
