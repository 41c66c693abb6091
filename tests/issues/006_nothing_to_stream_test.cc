// With every expert resident all ways cost the same, and the model streamed: each short prompt emptied half
// of the slots.
#include <gtest/gtest.h>

#include "experts/pass_cost.h"

namespace sluice::testing {
namespace {

TEST(NothingToStream, AShortPromptLeavesResidentExpertsWhereTheyAre) {
  const ExpertShape shape{.layers = 3, .experts = 8, .top_k = 2};
  const PassRates rates{.link_bytes_per_ms = 1000, .compute_ms_per_token = 1, .cpu = {}};
  PassQuestion question{.rows = 1,
                        .resident_rows = 24,
                        .outside_region = 24,
                        .listed = 24,
                        .row_bytes = 100,
                        .ensure_fits = true};
  EXPECT_EQ(choose_way(PrefillMode::kAuto, shape, rates, question).way, PassWay::kEnsure);
}

}  // namespace
}  // namespace sluice::testing
