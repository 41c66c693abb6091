// Replays of traces: every policy against its definition, and Belady's bound against all of them.
#include "experts/replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/expect_error.h"
#include "experts/replay_reference.h"
#include "random_values.h"

namespace sluice {
namespace {

using sluice::testing::expect_error;
using sluice::testing::ReplayReference;

struct Shape {
  int64_t layers = 4, experts = 16, top_k = 3, steps = 60;
  int64_t prefill_rows = 12;  // of the first step and of a few others; 0: decode alone
  int64_t padded_rows = 0;    // at the end of each decode step
};

/// Routing with favourites that drift, and repeats of the previous step, as real routers have them.
Trace random_trace(RandomValues& random, const Shape& shape) {
  Trace trace;
  trace.model = {"test", shape.experts, shape.top_k, {}};
  for (int64_t l = 0; l < shape.layers; ++l) {
    trace.model.layers.push_back({l + 1, static_cast<uint64_t>(100 + l)});
  }
  for (int64_t s = 0; s < shape.steps; ++s) {
    const bool prefill = shape.prefill_rows > 0 && (s == 0 || random.integer(0, 15) == 0);
    const int64_t rows = prefill ? random.integer(1, shape.prefill_rows) : 1;
    const int64_t padded = prefill ? 0 : shape.padded_rows;
    trace.steps.push_back(
        {prefill ? StepKind::kPrefill : StepKind::kDecode, rows + padded, trace.ids.size()});
    for (int64_t l = 0; l < shape.layers; ++l) {
      for (int64_t r = 0; r < rows; ++r) {
        std::set<uint16_t> row;
        while (static_cast<int64_t>(row.size()) < shape.top_k) {
          const int64_t favourite = s / 8 * 5 + l + random.integer(0, shape.experts / 4);
          const int64_t any = random.integer(0, shape.experts - 1);
          const int64_t id = random.integer(0, 2) == 0 ? any : favourite;
          row.insert(static_cast<uint16_t>(id % shape.experts));
        }
        trace.ids.insert(trace.ids.end(), row.begin(), row.end());
        std::shuffle(trace.ids.end() - shape.top_k, trace.ids.end(),
                     std::mt19937_64(static_cast<uint64_t>(random.integer(0, 1 << 30))));
      }
      trace.ids.insert(trace.ids.end(), static_cast<size_t>(padded * shape.top_k), Trace::kNoExpert);
    }
  }
  return trace;
}

/// A decode-only trace of one layer whose step i uses the experts ids[i].
Trace one_layer(int64_t experts, const std::vector<std::vector<uint16_t>>& ids) {
  Trace trace;
  trace.model = {"test", experts, static_cast<int64_t>(ids[0].size()), {{0, 10}}};
  for (const auto& row : ids) {
    trace.steps.push_back({StepKind::kDecode, 1, trace.ids.size()});
    trace.ids.insert(trace.ids.end(), row.begin(), row.end());
  }
  return trace;
}

ReplayResult replay_trace(const Trace& trace, ReplayPolicy policy, int64_t slots, bool decode_only = false,
                          const ReplayOptions& options = {}) {
  return replay(make_replay_calls(trace, slots, decode_only), policy, options);
}

class ReplayOf : public ::testing::TestWithParam<ReplayPolicy> {};

TEST_P(ReplayOf, EqualsItsDefinitionOnRandomTraces) {
  RandomValues random(81);
  SCOPED_TRACE(random.trace());
  const std::vector<Shape> shapes = {{},
                                     {1, 8, 1, 200, 0, 0},
                                     {1, 12, 4, 120, 20, 0},
                                     {7, 9, 2, 60, 0, 2},
                                     {70, 5, 2, 12, 3, 1},
                                     {3, 300, 8, 40, 30, 0},
                                     {2, 6, 6, 30, 5, 0}};
  for (int round = 0; round < 8; ++round) {
    for (size_t j = 0; j < shapes.size(); ++j) {
      const Trace trace = random_trace(random, shapes[j]);
      const int64_t all = trace.model.all_experts(), least = shapes[j].top_k;
      // Few slots cut prefill steps into parts.
      const int64_t most = round % 2 == 0 ? std::min(all, 3 * least) : all;
      const int64_t slots = round == 0 ? least : round == 1 ? all : random.integer(least, most);
      const bool decode_only = random.integer(0, 3) == 0;
      const ReplayOptions options{random.integer(1, round < 3 ? 3 : 40), random.integer(0, 12)};
      SCOPED_TRACE("round " + std::to_string(round) + ", shape " + std::to_string(j) + ", " +
                   std::to_string(slots) + " slots");
      const ReplayResult got = replay_trace(trace, GetParam(), slots, decode_only, options);
      const ReplayResult want = ReplayReference(trace, GetParam(), slots, decode_only, options).run();
      EXPECT_EQ(got.hits, want.hits);
      EXPECT_EQ(got.misses, want.misses);
      EXPECT_EQ(got.tokens, want.tokens);
      EXPECT_EQ(got.missed_bytes, want.missed_bytes);
    }
  }
}

TEST_P(ReplayOf, NeverBeatsBelady) {
  RandomValues random(82);
  SCOPED_TRACE(random.trace());
  for (int round = 0; round < 60; ++round) {
    Shape shape;
    shape.layers = random.integer(1, 6);
    shape.experts = random.integer(4, 24);
    shape.top_k = random.integer(1, 4);
    const Trace trace = random_trace(random, shape);
    const int64_t slots = random.integer(shape.top_k, trace.model.all_experts());
    EXPECT_LE(replay_trace(trace, GetParam(), slots).hits,
              replay_trace(trace, ReplayPolicy::kBelady, slots).hits)
        << "round " << round << ", " << slots << " slots";
  }
}

// `sluice trace record` of the demo model: the prompt "What is a violin?" and 300 tokens after it.
Trace demo_trace() {
  return read_trace(std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/golden/demo.trace");
}

TEST_P(ReplayOf, IsBoundedByBeladyOnARealTrace) {
  const Trace trace = demo_trace();
  ASSERT_EQ(trace.steps.size(), 301u);
  for (const int64_t slots : {6, 32, 64, 128, 256, 511, 512}) {
    const ReplayCalls calls = make_replay_calls(trace, slots, false);
    EXPECT_LE(replay(calls, GetParam()).hits, replay(calls, ReplayPolicy::kBelady).hits) << slots << " slots";
  }
}

TEST_P(ReplayOf, EqualsItsDefinitionOnARealTrace) {
  Trace trace = demo_trace();
  trace.steps.resize(60);  // the definition of Belady reads the rest of the trace at each miss
  const ReplayResult got = replay_trace(trace, GetParam(), 96);
  const ReplayResult want = ReplayReference(trace, GetParam(), 96, false, {}).run();
  EXPECT_EQ(got.hits, want.hits);
  EXPECT_EQ(got.misses, want.misses);
  EXPECT_EQ(got.missed_bytes, want.missed_bytes);
}

TEST_P(ReplayOf, MissesEachExpertOnceWhenAllHaveASlot) {
  RandomValues random(83);
  SCOPED_TRACE(random.trace());
  const Trace trace = random_trace(random, {});
  const ReplayCalls calls = make_replay_calls(trace, trace.model.all_experts(), false);
  const ReplayResult result = replay(calls, GetParam());
  EXPECT_EQ(result.misses, calls.distinct_keys);
  EXPECT_GT(result.hits, result.misses);
}

std::string name_of_case(const ::testing::TestParamInfo<ReplayPolicy>& info) {
  std::string name(name_of(info.param));
  std::erase(name, '-');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Policy, ReplayOf, ::testing::ValuesIn(kReplayPolicies), name_of_case);

/// Fewest misses of calls[c...] from `held`, over all choices of victims.
int64_t fewest_misses(const std::vector<std::set<int>>& calls, size_t c, const std::set<int>& held,
                      size_t slots, std::map<std::pair<size_t, std::set<int>>, int64_t>& known) {
  if (c == calls.size()) return 0;
  const auto found = known.find({c, held});
  if (found != known.end()) return found->second;
  std::set<int> all = held;
  all.insert(calls[c].begin(), calls[c].end());
  const auto misses = static_cast<int64_t>(all.size() - held.size());
  std::vector<int> others;
  for (const int key : held) {
    if (calls[c].count(key) == 0) others.push_back(key);
  }
  const size_t evicted = all.size() > slots ? all.size() - slots : 0;
  std::vector<bool> chosen(others.size());
  std::fill(chosen.begin(), chosen.begin() + static_cast<int64_t>(evicted), true);
  int64_t best = std::numeric_limits<int64_t>::max();
  do {
    std::set<int> next = all;
    for (size_t i = 0; i < others.size(); ++i) {
      if (chosen[i]) next.erase(others[i]);
    }
    best = std::min(best, fewest_misses(calls, c + 1, next, slots, known));
  } while (std::prev_permutation(chosen.begin(), chosen.end()));
  return known[{c, held}] = misses + best;
}

TEST(Belady, HasTheFewestMissesOfAllPossibleChoices) {
  RandomValues random(84);
  SCOPED_TRACE(random.trace());
  for (int round = 0; round < 40; ++round) {
    const Trace trace = random_trace(random, {2, 4, random.integer(1, 2), 12, 2, 0});
    const int64_t slots = random.integer(trace.model.top_k, 6);
    const ReplayCalls calls = make_replay_calls(trace, slots, false);
    std::vector<std::set<int>> sets;
    for (const auto& call : calls.calls) {
      const auto first = calls.keys.begin() + static_cast<int64_t>(call.first);
      sets.emplace_back(first, first + call.count);
    }
    std::map<std::pair<size_t, std::set<int>>, int64_t> known;
    EXPECT_EQ(replay(calls, ReplayPolicy::kBelady).misses,
              fewest_misses(sets, 0, {}, static_cast<size_t>(slots), known))
        << "round " << round;
  }
}

TEST(Lru, NeverHitsLessWithOneMoreSlotWhenACallUsesOneExpert) {
  RandomValues random(85);
  SCOPED_TRACE(random.trace());
  for (int round = 0; round < 5; ++round) {
    const Trace trace = random_trace(random, {3, 16, 1, 300, 0, 0});
    int64_t before = 0;
    for (int64_t slots = 1; slots <= trace.model.all_experts(); ++slots) {
      const int64_t hits = replay_trace(trace, ReplayPolicy::kLru, slots).hits;
      EXPECT_GE(hits, before) << slots << " slots";
      before = hits;
    }
  }
}

// Experts of one call share a last use, and their slots decide who goes first. A pool with K - 1 more slots
// holds all of the call of which the smaller one holds a part; with fewer more it may hold another part.
TEST(Lru, NeverHitsLessWithKMinusOneMoreSlots) {
  RandomValues random(86);
  SCOPED_TRACE(random.trace());
  for (int round = 0; round < 5; ++round) {
    const int64_t k = random.integer(2, 5);
    const Trace trace = random_trace(random, {3, 16, k, 200, 0, 0});
    std::vector<int64_t> hits;
    for (int64_t slots = k; slots <= trace.model.all_experts(); ++slots) {
      hits.push_back(replay_trace(trace, ReplayPolicy::kLru, slots).hits);
      const auto now = static_cast<int64_t>(hits.size()) - 1;
      if (now >= k - 1) {
        EXPECT_GE(hits.back(), hits[static_cast<size_t>(now - (k - 1))]) << slots << " slots";
      }
    }
  }
}

TEST(Belady, NeverHitsLessWithMoreSlots) {
  RandomValues random(87);
  SCOPED_TRACE(random.trace());
  const Trace trace = random_trace(random, {3, 16, 4, 200, 0, 0});
  int64_t before = 0;
  for (int64_t slots = 4; slots <= trace.model.all_experts(); ++slots) {
    const int64_t hits = replay_trace(trace, ReplayPolicy::kBelady, slots).hits;
    EXPECT_GE(hits, before) << slots << " slots";
    before = hits;
  }
}

TEST(Lru, EvictsTheLowestSlotAmongEquallyOldOnes) {
  // Experts 5, 1 and 3 come together and get the slots 0 to 2 in ascending id: 7 then evicts 1, 8 evicts 3.
  const std::vector<std::vector<uint16_t>> start = {{5, 1, 3}, {7, 5, 3}};
  auto then = start;
  then.push_back({1, 5, 3});
  EXPECT_EQ(replay_trace(one_layer(9, then), ReplayPolicy::kLru, 3).misses, 3 + 1 + 1);
  Trace trace = one_layer(9, {{1}, {2}, {1}, {3}, {1}, {2}});
  EXPECT_EQ(replay_trace(trace, ReplayPolicy::kLru, 2).misses, 4);  // 1 2 | 3 over 2, then 2 over 3
}

TEST(Lfu, KeepsWhatWasUsedOftenAndForgetsItWithTime) {
  std::vector<std::vector<uint16_t>> ids(10, {1});
  for (const uint16_t id : {2, 3, 1}) ids.push_back({id});
  // 3 goes over 2 although 1 is older.
  EXPECT_EQ(
      replay_trace(one_layer(5, ids), ReplayPolicy::kLfu, 2, false, {.lfu_half_life_tokens = 64}).misses, 3);
  EXPECT_EQ(replay_trace(one_layer(5, ids), ReplayPolicy::kLru, 2).misses, 4);
  ids.pop_back();
  for (int i = 0; i < 40; ++i) ids.push_back({static_cast<uint16_t>(2 + i % 2)});
  // With a long memory 2 and 3 drive each other out until one of them was used ten times, as 1 was: 18
  // times. With a short memory 1 is forgotten when 3 comes.
  EXPECT_EQ(
      replay_trace(one_layer(5, ids), ReplayPolicy::kLfu, 2, false, {.lfu_half_life_tokens = 4096}).misses,
      3 + 18);
  EXPECT_EQ(replay_trace(one_layer(5, ids), ReplayPolicy::kLfu, 2, false, {.lfu_half_life_tokens = 1}).misses,
            3);
}

/// `steps` equal steps over three layers of one expert each, with rows of 10, 20 and 30 bytes.
Trace three_layers(int steps) {
  Trace trace;
  trace.model = {"test", 8, 1, {{0, 10}, {1, 20}, {2, 30}}};
  for (int s = 0; s < steps; ++s) {
    trace.steps.push_back({StepKind::kDecode, 1, trace.ids.size()});
    trace.ids.insert(trace.ids.end(), {0, 5, 6});
  }
  return trace;
}

TEST(LeastStale, KeepsWhatTheNextLayersNeedWhereLruMissesAlways) {
  const Trace trace = three_layers(4);
  EXPECT_EQ(replay_trace(trace, ReplayPolicy::kLru, 2).hits, 0);
  const ReplayResult result = replay_trace(trace, ReplayPolicy::kLeastStale, 2);
  EXPECT_EQ(result.misses, 3 + 1 + 2 + 1);
  EXPECT_EQ(result.missed_bytes, 60u + 20 + 40 + 20);
  EXPECT_EQ(replay_trace(trace, ReplayPolicy::kBelady, 2).misses, 7);
}

TEST(LeastStale, EvictsWhatItsLayerDidNotUseAgainBeforeAnythingElse) {
  Trace trace = three_layers(3);
  trace.ids = {0, 5, 6, 1, 5, 6, 0, 5, 6};
  // 4 slots: 1 comes into the empty one; nothing is evicted, and 0 is still there.
  EXPECT_EQ(replay_trace(trace, ReplayPolicy::kLeastStale, 4).misses, 4);
  // 3 slots: 1 takes the place of 0, which this turn does not use, not that of 6, which lies as far back.
  EXPECT_EQ(replay_trace(trace, ReplayPolicy::kLeastStale, 3).misses, 5);
}

TEST(Scored, WeighsTheTurnOfTheLayerByBeta) {
  const Trace trace = three_layers(4);
  EXPECT_EQ(replay_trace(trace, ReplayPolicy::kScored, 2, false, {.scored_beta = 0}).hits, 0);
  EXPECT_EQ(replay_trace(trace, ReplayPolicy::kScored, 2, false, {.scored_beta = 4}).misses, 7);
}

TEST(ReplayCalls, CutsRowsThatNeedMoreThanThereIs) {
  Trace trace;
  trace.model = {"test", 8, 2, {{3, 10}}};
  trace.steps.push_back({StepKind::kPrefill, 4, 0});
  trace.ids = {0, 1, 1, 2, 3, 0, 6, 7};
  const ReplayCalls calls = make_replay_calls(trace, 3, false);
  ASSERT_EQ(calls.calls.size(), 3u);
  EXPECT_EQ(calls.keys, (std::vector<int32_t>{0, 1, 2, 0, 3, 6, 7}));
  EXPECT_EQ(calls.calls[1].count, 2);
  EXPECT_EQ(calls.tokens, 4);
  EXPECT_EQ(calls.distinct_keys, 6);
  EXPECT_EQ(make_replay_calls(trace, 8, false).calls.size(), 1u);
  EXPECT_EQ(make_replay_calls(trace, 8, true).calls.size(), 0u);
  EXPECT_EQ(make_replay_calls(trace, 8, true).tokens, 0);
}

TEST(ReplayCalls, LeaveOutRowsThatOnlyPad) {
  Trace trace;
  trace.model = {"test", 8, 2, {{3, 10}}};
  trace.steps.push_back({StepKind::kDecode, 2, 0});
  trace.ids = {4, 1, Trace::kNoExpert, Trace::kNoExpert};
  trace.steps.push_back({StepKind::kDecode, 1, 4});
  trace.ids.insert(trace.ids.end(), {Trace::kNoExpert, Trace::kNoExpert});
  const ReplayCalls calls = make_replay_calls(trace, 2, true);
  EXPECT_EQ(calls.calls.size(), 1u);
  EXPECT_EQ(calls.keys, (std::vector<int32_t>{1, 4}));
  EXPECT_EQ(calls.tokens, 1);
}

TEST(ReplayCalls, RefuseSlotCountsThatCannotBe) {
  RandomValues random(88);
  const Trace trace = random_trace(random, {4, 16, 3, 2, 0, 0});
  expect_error(ErrorCode::kInvalidArgument, {"2 slots are too few", "least is 3"},
               [&] { make_replay_calls(trace, 2, false); });
  expect_error(ErrorCode::kInvalidArgument, {"65 slots are more than all 64", "4 layers of 16"},
               [&] { make_replay_calls(trace, 65, false); });
  EXPECT_EQ(make_replay_calls(trace, 3, false).slots, 3);
  EXPECT_EQ(make_replay_calls(trace, 64, false).slots, 64);
}

TEST(ReplayResult, OfAnEmptyTraceIsZero) {
  Trace trace;
  trace.model = {"test", 8, 2, {{3, 10}}};
  for (const ReplayPolicy policy : kReplayPolicies) {
    const ReplayResult result = replay_trace(trace, policy, 4);
    EXPECT_EQ(result.hit_rate(), 0);
    EXPECT_EQ(result.misses_per_token(), 0);
    EXPECT_EQ(result.bytes_per_token(), 0);
  }
}

}  // namespace
}  // namespace sluice
