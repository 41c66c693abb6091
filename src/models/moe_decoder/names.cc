// Looks for the first tensors of a decoder.
#include "models/moe_decoder/names.h"

#include <algorithm>
#include <string_view>

namespace sluice::moe_decoder {
namespace {

bool has_any(const Checkpoint& checkpoint, std::string_view prefix) {
  const auto& all = checkpoint.tensors();
  const auto at = std::lower_bound(all.begin(), all.end(), prefix,
                                   [](const Tensor* t, std::string_view name) { return t->name < name; });
  return at != all.end() && (*at)->name.starts_with(prefix);
}

}  // namespace

Names find_names(const Checkpoint& checkpoint, const DecoderConfig& config) {
  Names names{"model.", "lm_head", config.moe_blocks.front()};
  if (has_any(checkpoint, "model.language_model.layers.")) {
    names.model = "model.language_model.";
  } else if (has_any(checkpoint, "language_model.model.layers.")) {
    names.model = "language_model.model.";
    names.head = "language_model.lm_head";
  }
  const auto moe = std::find(config.is_moe.begin(), config.is_moe.end(), true);
  const int64_t layer = moe == config.is_moe.end() ? 0 : moe - config.is_moe.begin();
  for (const std::string& block : config.moe_blocks) {
    if (!has_any(checkpoint, names.layer(layer) + block + ".gate.")) continue;
    names.moe_block = block;
    break;
  }
  return names;
}

}  // namespace sluice::moe_decoder
