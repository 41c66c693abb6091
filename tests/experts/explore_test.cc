// Explores schedules of the executor that serves: no race, no deadlock, no wrong byte.
#include "device/explored/explore.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "experts/explore_scenarios.h"

namespace sluice {
namespace {

// The long program runs what the mutation table and reviews quote.
#ifdef SLUICE_EXPLORE_LONG
constexpr int64_t kSchedules = 10000, kShadowed = 50, kExhaustive = 200000;
#else
constexpr int64_t kSchedules = 100, kShadowed = 1, kExhaustive = 3000;
#endif
constexpr uint64_t kFirstSeed = 1;

void expect_clean(const std::string& what, const Exploration& result) {
  EXPECT_FALSE(result.violation.has_value()) << what << ": " << result.violation->report();
  std::printf("%s: %lld schedules from seed %llu%s, %lld pieces\n", what.c_str(),
              static_cast<long long>(result.schedules), static_cast<unsigned long long>(kFirstSeed),
              result.complete ? ", all there are" : "", static_cast<long long>(result.pieces));
}

class Protocol : public ::testing::TestWithParam<ProtocolScenario> {};

TEST_P(Protocol, HasNoViolationInManySchedules) {
  expect_clean(GetParam().name, explore_random(GetParam().scenario(), kSchedules, kFirstSeed));
}

TEST_P(Protocol, TouchesOnlyWhatItsOperationsDeclare) {
  ExploreOptions options;
  options.shadow = true;
  expect_clean(GetParam().name, explore_random(GetParam().scenario(), kShadowed, kFirstSeed, options));
}

std::string name_of_scenario(const ::testing::TestParamInfo<ProtocolScenario>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(explore, Protocol,
                         ::testing::ValuesIn(protocol_scenarios().begin(), protocol_scenarios().end()),
                         name_of_scenario);

// The host wrote the next pass's table while the copy of the last one's was queued: without hits, no wait for
// residents stands between passes.
TEST(explore, DoesNotOverwriteAPassTableThatIsStillRead) {
  expect_clean("pass table", explore_random(find_scenario("stream_back_to_back_hits_off").scenario(), 20, 1));
}

// Every slot above the region was listed for later layers, and decode between the layers found no victim.
TEST(explore, FindsSlotsForDecodeWhereThePassCountsOnAllResidents) {
  expect_clean("decode between", explore_random(find_scenario("stream_decode_between").scenario(), 20, 1));
}

// What would go wrong is in the table of mutations.
TEST(explore, RefusesADecodeStepInsideAPassThatUnmapsOnTheCopyStream) {
  const Exploration result = explore_random(decode_inside_layer_invalidation({}), 1, kFirstSeed);
  ASSERT_TRUE(result.violation.has_value());
  EXPECT_NE(result.violation->message.find("needs epoch invalidation (--prefill-invalidate epoch)"),
            std::string::npos)
      << result.violation->message;
}

TEST(explore, RunsASmallDecodeStepInEverySchedule) {
  ExploreOptions options;
  options.torn = false;
  const Exploration result = explore_all(tiny_decode(), kExhaustive, options);
  expect_clean("tiny_decode", result);
}

}  // namespace
}  // namespace sluice
