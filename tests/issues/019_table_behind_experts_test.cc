// The copy stream was let go before the pass's table was on its way: two tiles of experts, of a higher
// priority, crossed first, and the first layer waited for both before it began. Only where products are slow
// did the link not make up for it.
#include <gtest/gtest.h>

#include "engine/simulation.h"
#include "models/shape_model.h"

namespace sluice {
namespace {

double first_token_ms(const Arm& arm) {
  ModelShape shape = model_shape("q36");
  shape.layers = 4;
  MachineModel machine = machine_model("published");
  machine.share = 0.05;
  TimedDevice clock({.machine = machine, .runs = runs_for_shape, .keep_timeline = false});
  const auto model = make_shape_model(clock, shape, {});
  Runtime runtime(clock, *model, arm_settings(arm, expert_shape(model->info())));
  return simulate(runtime, clock, {4096, 512}, {64, 0, 0}).ttft_ms;
}

TEST(TableBehindExperts, APriorityForCopiesCostsNothingWhereProductsAreSlow) {
  const double epoch = first_token_ms(published_arms()[2]), both = first_token_ms(published_arms()[3]);
  EXPECT_LE(both, epoch * (1 + 1e-9)) << "epoch " << epoch << " ms, both " << both << " ms";
}

}  // namespace
}  // namespace sluice
