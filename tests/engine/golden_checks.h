// The checks that every tiny checkpoint with a reference's results must pass.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "engine/session.h"
#include "models/computing_in.h"
#include "models/golden.h"

namespace sluice::testing {

inline constexpr int64_t kNever = int64_t{1} << 40;  // decode from: no token alone

/// What a model said about a sequence: logits [n, vocab] and, by layer, experts [n, k].
struct Outcome {
  std::vector<float> logits;
  std::map<int64_t, std::vector<int32_t>> top_k;
  bool operator==(const Outcome&) const = default;
};

/// A checkpoint loaded once, and its golden.
class GoldenModel {
 public:
  /// `results`: the folder with golden.safetensors, where it is another one. `device` outlives the model;
  /// null: the host's. The default options are what the reference
  /// computed in.
  explicit GoldenModel(const std::filesystem::path& folder, const std::filesystem::path& results = {},
                       Device* device = nullptr, const LoadOptions& options = computing_in(Compute::kF32));

  const Golden& golden() const { return golden_; }
  const Model& model() const { return *model_; }
  std::unique_ptr<Runtime> runtime(const ExpertSettings& settings) const;
  /// Sequence `j` in chunks, its tokens from `decode_from` on one by one.
  Outcome run(Runtime& runtime, size_t j, int64_t chunk, int64_t decode_from) const;

  /// max |logit error| <= tolerance against the reference, and the same sets of experts.
  void expect_logits_and_experts(double tolerance, const ExpertSettings& settings = {}) const;
  /// The logits' root mean square error is <= tolerance * their root mean square, over the tokens that go to
  /// the reference's experts: nine of ten (near scores may go either way). And along the reference's greedy
  /// text the same choice wherever the reference's best logit is more than `margin` above the others;
  /// `in_reference` is this checkpoint in f32.
  void expect_logits_and_choices(const GoldenModel& in_reference, double tolerance, double margin,
                                 const ExpertSettings& settings = {}) const;
  /// Chunks and decoded tokens change no bit.
  void expect_same_bits_for_every_cut() const;
  void expect_greedy_text(const ExpertSettings& settings = {}) const;
  /// Nor do slots, of any number from the fewest to all, in any form of prefill.
  void expect_same_bits_with_slots() const;
  /// Slots that the layers' row layouts need at least.
  int64_t fewest_slots() const;

 private:
  /// Of sequence `j`: which tokens went to the reference's experts in every layer.
  std::vector<bool> rows_of_same_experts(const Outcome& got, size_t j) const;

  Golden golden_;
  Checkpoint checkpoint_;
  std::unique_ptr<Device> own_device_;
  Device& device_;
  std::unique_ptr<Model> model_;
};

}  // namespace sluice::testing
