// A sample of the matrix for every day, and sessions that take turns inside a prompt.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "engine/residency_matrix.h"
#include "random_values.h"

namespace sluice::testing {
namespace {

constexpr size_t kCombinations = 256;

TEST(ResidencyMatrix, HoldsEveryValueAndNoTwoEqualCombinations) {
  const std::vector<Combination> matrix = residency_matrix(kCombinations);
  std::set<std::string> seen;
  std::set<int64_t> odd;
  std::set<size_t> smallest, largest;
  for (const Combination& c : matrix) {
    seen.insert(describe(c));
    const ExpertShape shape = expert_shape(matrix_model(c.model).model->info());
    if (c.settings.slots % 2 == 1) odd.insert(c.settings.slots);
    if (c.settings.slots == matrix_model(c.model).least_slots()) smallest.insert(c.model);
    if (c.settings.slots == shape.layers * shape.experts) largest.insert(c.model);
  }
  EXPECT_GE(seen.size(), 200u);
  EXPECT_GE(odd.size(), 5u);
  EXPECT_EQ(smallest.size(), kMatrixModels);
  EXPECT_EQ(largest.size(), kMatrixModels);
}

TEST(ResidencyMatrix, ASampleOfFortyChangesNoBit) {
  RandomValues random(20261);
  std::printf("SLUICE_TEST_SEED=%llu\n", static_cast<unsigned long long>(random.seed()));
  SCOPED_TRACE(random.trace());
  std::vector<Combination> matrix = residency_matrix(kCombinations);
  for (size_t i = 0; i < 40; ++i) {
    const auto other =
        static_cast<size_t>(random.integer(static_cast<int64_t>(i), static_cast<int64_t>(matrix.size()) - 1));
    std::swap(matrix[i], matrix[other]);
    expect_residency_changes_nothing(matrix[i]);
  }
}

/// Greedy tokens of a session: its prompt, then one a call.
class Decoder {
 public:
  Decoder(Runtime& runtime, const std::vector<int32_t>& prompt)
      : session_(runtime, {.capacity_tokens = 64}), next_(best(session_.prefill(prompt))) {}
  void step() {
    tokens_.push_back(next_);
    const std::span<const float> logits = session_.decode(next_);
    logits_.insert(logits_.end(), logits.begin(), logits.end());
    next_ = best(logits);
  }
  const std::vector<int32_t>& tokens() const { return tokens_; }
  const std::vector<float>& logits() const { return logits_; }

 private:
  static int32_t best(std::span<const float> logits) {
    return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
  Session session_;
  int32_t next_;
  std::vector<int32_t> tokens_;
  std::vector<float> logits_;
};

struct Turn {
  size_t model;
  PrefillMode mode;
  HitMode hits;
  int64_t chunk;
  bool all_slots;
  CpuMode cpu = CpuMode::kOff;
};

class TwoSessions : public ::testing::TestWithParam<Turn> {};

TEST_P(TwoSessions, OneDecodesBetweenTheLayersOfTheOthersPrompt) {
  const auto& [index, mode, hits, chunk, all_slots, cpu] = GetParam();
  const MatrixModel& model = matrix_model(index);
  const ExpertShape shape = expert_shape(model.model->info());
  const std::vector<int32_t> other(model.ids.rbegin(), model.ids.rbegin() + 9);
  const Cut cut{chunk, 18};

  Runtime direct(*model.device, *model.model, ExpertSettings());
  const Told want = run_text(model, direct, cut).told;
  ExpertSettings settings;
  settings.prefill = mode;
  settings.compare.hits = hits;
  settings.cpu.mode = cpu;
  settings.audit_every = 1;
  // Few slots: a ring of two tiles and what one decode step needs.
  settings.slots = all_slots ? shape.layers * shape.experts : model.least_slots() + 4 * model.pools;
  settings.ring_slots = all_slots ? 0 : 4 * model.pools;
  Runtime runtime(*model.device, *model.model, settings);
  Decoder decoder(runtime, other);
  // Every slot gets an owner, so that a pass has as much to list as there can be.
  for (int i = 0; i < 12; ++i) decoder.step();
  Session session(runtime, {.capacity_tokens = 64, .chunk_tokens = chunk});
  session.between_layers([&] { decoder.step(); });
  std::vector<float> logits;
  session.run_all(model.ids, cut.decode_from, [&](int64_t, std::span<const float> rows, int64_t) {
    logits.insert(logits.end(), rows.begin(), rows.end());
  });
  GenerateOptions options;
  options.max_tokens = static_cast<int64_t>(want.greedy.size());
  EXPECT_EQ(generate(session, model.ids, options, nullptr).ids, want.greedy);
  EXPECT_TRUE(logits == want.logits);

  Decoder alone(direct, other);
  while (alone.tokens().size() < decoder.tokens().size()) alone.step();
  EXPECT_GT(decoder.tokens().size(), 12u);
  EXPECT_EQ(decoder.tokens(), alone.tokens());
  EXPECT_TRUE(decoder.logits() == alone.logits());
  EXPECT_GT(runtime.resident()->audits(), 0u);
  EXPECT_NO_THROW(runtime.resident()->report());
}

std::vector<Turn> turns() {
  std::vector<Turn> result;
  size_t turn = 0;
  const auto add = [&](Turn next) {
    next.model += turn++ % 2 == 0 ? 0 : kMatrixCheckpoints;  // f32 and bf16 in turn
    result.push_back(next);
  };
  for (size_t model = 0; model < kMatrixCheckpoints; ++model, ++turn) {
    for (const CpuMode cpu : {CpuMode::kAuto, CpuMode::kAlways}) {
      add({model, PrefillMode::kTouched, HitMode::kInPlace, 512, false, cpu});
      add({model, PrefillMode::kAuto, HitMode::kInPlace, 5, false, cpu});
      add({model, PrefillMode::kStream, HitMode::kDeviceToDevice, 7, false, cpu});
      add({model, PrefillMode::kLayerMajor, HitMode::kInPlace, 5, true, cpu});
    }
    for (const bool all_slots : {false, true}) {
      add({model, PrefillMode::kStream, HitMode::kInPlace, 512, all_slots});
      add({model, PrefillMode::kStream, HitMode::kDeviceToDevice, 7, all_slots});
      add({model, PrefillMode::kTouched, HitMode::kInPlace, 512, all_slots});
      add({model, PrefillMode::kAuto, HitMode::kOff, 5, all_slots});
      add({model, PrefillMode::kLayerMajor, HitMode::kInPlace, 5, all_slots});
      add({model, PrefillMode::kLayerMajor, HitMode::kDeviceToDevice, 7, all_slots});
    }
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Turns, TwoSessions, ::testing::ValuesIn(turns()));

}  // namespace
}  // namespace sluice::testing
