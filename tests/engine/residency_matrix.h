// Combinations of the switches of expert residency, and runs that must not depend on them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "engine/session.h"

namespace sluice::testing {

/// A loaded checkpoint with a short text; runtimes with and without slots are made from it.
struct MatrixModel {
  MatrixModel(const std::string& name, const std::filesystem::path& folder, Compute compute);
  std::string name;
  Checkpoint checkpoint;
  std::unique_ptr<Device> device;
  std::unique_ptr<Model> model;
  std::vector<int32_t> ids;
  int64_t pools = 0;  // row layouts of its experts

  /// The fewest slots: those of a decode step in each pool.
  int64_t least_slots() const { return pools * min_slots(expert_shape(model->info())); }
};

/// The demo model, golden checkpoints (the fifth has shared experts) and one of three formats, each loaded
/// once a process: first all of them in f32, then in bf16.
MatrixModel& matrix_model(size_t index);
inline constexpr size_t kMatrixCheckpoints = 6, kMatrixModels = 2 * kMatrixCheckpoints;

/// How a text is cut; runs are compared at equal cuts.
struct Cut {
  int64_t chunk = 512;
  int64_t decode_from = 0;  // tokens from here on pass one by one
  auto operator<=>(const Cut&) const = default;
};

struct Combination {
  size_t model = 0;
  Cut cut;
  ExpertSettings settings;
  bool warm = false;     // slots are filled before the first forward
  bool resizes = false;  // the pool has another size after each forward
};
std::string describe(const Combination& combination);

/// `count` combinations, always the same ones. Each value of each switch stands in equally many of them, and
/// the switches are combined at random.
std::vector<Combination> residency_matrix(size_t count);

/// All that a model says about a text: logits and routes of every token, and a greedy continuation.
struct Told {
  std::vector<float> logits;
  std::map<int64_t, std::vector<int32_t>> routes;  // by the model's layer number
  std::vector<int32_t> greedy;
  bool operator==(const Told&) const = default;
};

/// Experts that one forward routed to, without repeats, by MoE layer.
struct ForwardUse {
  bool decode = false;
  std::vector<uint64_t> distinct;
};

struct Run {
  Told told;
  std::vector<ForwardUse> forwards;
  int64_t logit_reads = 0;  // one a chunk of the text, whose logits are all wanted
};
/// Evaluates the model's text with `runtime`, then continues it; `between` is called after each forward of
/// the text.
Run run_text(const MatrixModel& model, Runtime& runtime, const Cut& cut,
             const std::function<void()>& between = {});

/// Runs the combination and checks: all bits as without slots, the counters add up to what was routed, every
/// forward was audited, and the host waited no more often than it may.
void expect_residency_changes_nothing(const Combination& combination);

}  // namespace sluice::testing
