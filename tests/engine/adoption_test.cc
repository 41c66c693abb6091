// What a prompt leaves in the slots: the experts of its last tokens, in every way that borrows a region.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "engine/residency_matrix.h"

namespace sluice::testing {
namespace {

struct Case {
  const char* name;
  PrefillMode mode;
  HitMode hits;
  PassWay way;
  int64_t chunk;
  int64_t last;  // tokens of the last pass or chunk, at most 16: their experts stay
};

class Adoption : public ::testing::TestWithParam<Case> {};

TEST_P(Adoption, KeepsTheExpertsOfTheLastTokens) {
  constexpr size_t kTokens = 20;
  const Case& c = GetParam();
  MatrixModel& model = matrix_model(0);
  ExpertSettings settings;
  settings.slots = 512;  // room for all of them above the region
  settings.prefill = c.mode;
  settings.compare.hits = c.hits;
  Runtime runtime(*model.device, *model.model, settings);
  Session session(runtime, {.capacity_tokens = 64, .chunk_tokens = c.chunk});
  const int64_t k = model.model->info().top_k;
  std::map<int64_t, std::vector<int32_t>> routes;  // by the model's layer
  session.observe_routes([&](int64_t layer, std::span<const int32_t> ids, int64_t) {
    routes[layer].insert(routes[layer].end(), ids.begin(), ids.end());
  });
  session.prefill(std::vector<int32_t>(kTokens, 321));  // one token: few experts
  ASSERT_EQ(runtime.resident()->report().passes.back().way, c.way);

  const std::vector<Resident> held = runtime.resident()->residency();
  const std::vector<int64_t>& layers = model.model->info().moe_layers;
  size_t expected = 0;
  for (size_t l = 0; l < layers.size(); ++l) {
    const std::vector<int32_t>& ids = routes.at(layers[l]);
    const std::set<int32_t> wanted(ids.end() - c.last * k, ids.end());
    expected += wanted.size();
    for (const int32_t expert : wanted) {
      const Resident resident{static_cast<int32_t>(l), expert};
      EXPECT_EQ(std::count(held.begin(), held.end(), resident), 1) << "layer " << l << ", expert " << expert;
    }
  }
  ASSERT_GE(expected, layers.size() * static_cast<size_t>(k));
  EXPECT_LE(expected, 512u - 128u) << "more than has room above the region: the test asks too much";
}

INSTANTIATE_TEST_SUITE_P(
    Ways, Adoption,
    ::testing::Values(
        Case{"Stream", PrefillMode::kStream, HitMode::kInPlace, PassWay::kStream, 12, 8},
        Case{"StreamD2d", PrefillMode::kStream, HitMode::kDeviceToDevice, PassWay::kStream, 512, 16},
        Case{"Touched", PrefillMode::kTouched, HitMode::kInPlace, PassWay::kTouched, 20, 16},
        Case{"LayerMajor", PrefillMode::kLayerMajor, HitMode::kInPlace, PassWay::kLayerMajor, 12, 8}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace sluice::testing
