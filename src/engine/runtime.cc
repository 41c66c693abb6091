// Chooses the executor of a model's experts.
#include "engine/runtime.h"

namespace sluice {

ExpertShape expert_shape(const ModelInfo& info) {
  return {static_cast<int64_t>(info.moe_layers.size()), info.experts, info.top_k, 1};
}

Runtime::Runtime(Device& device, Model& model, const ExpertSettings& settings)
    : device_(device), model_(model), compute_(device.make_stream("compute", Priority::kNormal)) {
  if (settings.slots > 0 && !model.info().moe_layers.empty()) {
    resident_ = std::make_unique<ResidentExperts>(device, *compute_, model.expert_rows(),
                                                  expert_shape(model.info()), settings, model.max_rows());
    executor_ = resident_.get();
  } else {
    direct_ = std::make_unique<DirectExecutor>(model.expert_rows());
    executor_ = direct_.get();
  }
}

}  // namespace sluice
