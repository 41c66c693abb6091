// Forecasts on the simulated clock: the published arms, and whether the cost model picks the quickest way.
#include "engine/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "models/shape_model.h"

namespace sluice {
namespace {

struct Simulated {
  Simulated(const std::string& card, const ModelShape& shape, int64_t chunk = 512, double share = 1)
      : clock({.machine = with_share(card, share), .runs = runs_for_shape, .keep_timeline = false}),
        model(make_shape_model(clock, shape, at_most(chunk))),
        chunk_tokens(chunk) {}

  static LoadOptions at_most(int64_t rows) {
    LoadOptions options;
    options.max_rows = rows;
    return options;
  }
  static MachineModel with_share(const std::string& card, double share) {
    MachineModel machine = machine_model(card);
    machine.share = share;
    return machine;
  }

  SimulatedRun arm(const Arm& arm, int64_t prompt_tokens) {
    Runtime runtime(clock, *model, arm_settings(arm, expert_shape(model->info())));
    return simulate(runtime, clock, {4096, chunk_tokens}, {prompt_tokens, 0, 0});
  }

  TimedDevice clock;
  std::unique_ptr<Model> model;
  int64_t chunk_tokens;
};

TEST(PublishedArms, StandInThePublishedOrderOnEveryCard) {
  for (const char* card : {"published", "rtx5070ti", "rtx4090", "rtx5090"}) {
    for (const int64_t tokens : {64, 125}) {
      Simulated simulated(card, model_shape("q36"));
      std::vector<double> ms;
      for (const Arm& arm : published_arms()) ms.push_back(simulated.arm(arm, tokens).ttft_ms);
      std::printf("%s, %lld tokens: neither %.2f, priority %.2f, epoch %.2f, both %.2f ms\n", card,
                  static_cast<long long>(tokens), ms[0], ms[1], ms[2], ms[3]);
      EXPECT_GT(ms[0], ms[1]);
      EXPECT_GT(ms[1], ms[2]);
      // Nothing but copies is left on the copy stream: its priority no longer matters.
      EXPECT_GE(ms[2], ms[3] * (1 - 1e-9));
    }
  }
}

// The published card lost far more without the switches than a card whose products run at full rate.
TEST(PublishedArms, LoseMoreTheLongerThePublishedKernelsRun) {
  double before = 0;
  for (const double share : {1.0, 0.2, 0.05}) {
    Simulated simulated("published", model_shape("q36"), 512, share);
    const double neither = simulated.arm(published_arms().front(), 64).ttft_ms;
    const double both = simulated.arm(published_arms().back(), 64).ttft_ms;
    std::printf("compute at %.2f: neither %.1f, both %.1f ms\n", share, neither, both);
    EXPECT_GT(neither - both, before);
    before = neither - both;
  }
}

TEST(PublishedArms, WithBothSwitchesTheLinkIsTheLimit) {
  Simulated simulated("published", model_shape("q36"));
  const SimulatedRun run = simulated.arm(published_arms().back(), 64);
  EXPECT_GT(run.prefill_link_share, 0.97);
  EXPECT_GT(run.prefill_link_bytes_per_s, 0.95 * machine_model("published").link_bytes_per_s);
}

// Time to the first token of a prompt after others of several lengths, in one mode.
double measure(const std::string& card, const ModelShape& shape, PrefillMode mode, double share,
               int64_t tokens, PassWay* way = nullptr) {
  Simulated simulated(card, shape);
  ExpertSettings settings;
  settings.slots = static_cast<int64_t>(share * static_cast<double>(shape.layers * shape.experts));
  settings.prefill = mode;
  Runtime runtime(simulated.clock, *simulated.model, settings);
  Session session(runtime, {4096, 512});
  int32_t salt = 1;
  const auto prompt = [&](int64_t n) {
    std::vector<int32_t> ids(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i)
      ids[static_cast<size_t>(i)] = static_cast<int32_t>((i * 31 + salt) % 1000);
    ++salt;
    const double start = simulated.clock.now_us();
    session.prefill(ids);
    return simulated.clock.now_us() - start;
  };
  for (const int64_t n : {600, 12, 100, 600, 12, 100}) {
    prompt(n);
    for (int i = 0; i < 4; ++i) session.decode(i);
  }
  const double us = prompt(tokens);
  if (way != nullptr) *way = runtime.resident()->report().passes.back().way;
  return us / 1000;
}

TEST(CostModel, PicksTheQuickestOfTheForcedWays) {
  ModelShape shape = model_shape("q36");
  shape.layers = 8;
  int situations = 0, quickest = 0;
  for (const char* card : {"published", "rtx4090", "rtx5090"}) {
    for (const double share : {0.15, 0.6}) {
      for (const int64_t tokens : {4, 30, 300, 1500}) {
        PassWay way;
        const double chosen = measure(card, shape, PrefillMode::kAuto, share, tokens, &way);
        double best = chosen;
        for (const PrefillMode mode :
             {PrefillMode::kStream, PrefillMode::kTouched, PrefillMode::kLayerMajor}) {
          best = std::min(best, measure(card, shape, mode, share, tokens));
        }
        ++situations;
        quickest += chosen <= 1.05 * best ? 1 : 0;
        std::printf("%s, %2.0f %% in slots, %lld tokens: %s %.2f ms, best %.2f ms\n", card, 100 * share,
                    static_cast<long long>(tokens), std::string(name_of(way)).c_str(), chosen, best);
      }
    }
  }
  EXPECT_EQ(situations, 24);
  EXPECT_GE(quickest, 21);
}

}  // namespace
}  // namespace sluice
