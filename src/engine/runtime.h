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

 private:
  Device& device_;
  Model& model_;
  std::unique_ptr<Stream> compute_;
  std::unique_ptr<DirectExecutor> direct_;
  std::unique_ptr<ResidentExperts> resident_;
  MoeExecutor* executor_ = nullptr;
};

ExpertShape expert_shape(const ModelInfo& info);

}  // namespace sluice
