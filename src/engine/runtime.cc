// Chooses the executor of a model's experts.
#include "engine/runtime.h"

#include <algorithm>

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

void Runtime::reserve_group(int64_t tokens) {
  if (!resident_) return;
  const ExpertSettings& settings = resident_->settings();
  if (settings.prefill != PrefillMode::kAuto && settings.prefill != PrefillMode::kLayerMajor) return;
  const BatchUse use = resident_->splits_layers() ? BatchUse::kGroupInTiles : BatchUse::kGroup;
  const int64_t rows = std::min(tokens, most_group_tokens(model_.info(), settings, use));
  if (rows > group_tokens()) group_memory_ = model_.make_batch_memory(use, rows);
}

int64_t Runtime::group_tokens() const {
  if (!group_memory_) return 0;
  const bool shares_outputs = group_memory_->outputs.data() == nullptr;
  return resident_->splits_layers() && shares_outputs ? 0 : group_memory_->max_rows;
}

uint64_t group_bytes_per_token(const ModelInfo& info, BatchUse use) {
  return BatchMemory::bytes_per_token(use, info.hidden, info.kv.head_dim / 2, info.top_k);
}

int64_t most_group_tokens(const ModelInfo& info, const ExpertSettings& settings, BatchUse use) {
  if (settings.prefill_group > 0) return settings.prefill_group;
  return std::max<int64_t>(1, static_cast<int64_t>(kGroupBytes / group_bytes_per_token(info, use)));
}

}  // namespace sluice
