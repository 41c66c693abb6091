// A loaded model with what runs it: the compute stream and the way of its experts.
#pragma once

#include <memory>

#include "experts/direct_executor.h"
#include "experts/resident_experts.h"
#include "models/model.h"

namespace sluice {

/// Everything that sessions of one model share. Sessions take turns: one forward at a time, or a decode step
/// between the layers of a prefill.
class Runtime {
 public:
  /// settings.slots 0: experts are computed from host memory. `model` and `device` outlive the runtime.
  /// Throws Error.
  Runtime(Device& device, Model& model, const ExpertSettings& settings);

  Device& device() const { return device_; }
  Model& model() const { return model_; }
  Stream& compute() const { return *compute_; }
  /// Null where experts have no slots.
  ResidentExperts* resident() const { return resident_.get(); }
  MoeExecutor& experts() const { return *executor_; }

  /// Makes room for layer-major groups of up to `tokens` tokens, cut to what the settings allow; none where
  /// prompts never go that way. Sessions ask when they are made. Throws Error kOutOfMemory.
  void reserve_group(int64_t tokens);
  /// Null where nothing was reserved. Belongs to the running prefill.
  const BatchMemory* group_memory() const { return group_memory_.get(); }
  /// Most tokens of a group now. None where the slots have become so few that a layer's experts cross in
  /// several tiles, and the memory was made for one.
  int64_t group_tokens() const;

 private:
  Device& device_;
  Model& model_;
  std::unique_ptr<Stream> compute_;
  std::unique_ptr<DirectExecutor> direct_;
  std::unique_ptr<ResidentExperts> resident_;
  MoeExecutor* executor_ = nullptr;
  std::unique_ptr<BatchMemory> group_memory_;
};

/// Device memory of a layer-major group for each of its tokens.
uint64_t group_bytes_per_token(const ModelInfo& info, BatchUse use);
/// Most tokens of a group: what the settings say, else what kGroupBytes hold.
int64_t most_group_tokens(const ModelInfo& info, const ExpertSettings& settings, BatchUse use);

ExpertShape expert_shape(const ModelInfo& info);

}  // namespace sluice
