// Goes through the names of a checkpoint once.
#include "models/qwen3_moe/unused.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice::qwen3_moe {
namespace {

constexpr std::string_view kLayers = "model.layers.";
constexpr std::string_view kInEveryLayer[] = {
    "input_layernorm.",  "post_attention_layernorm.", "self_attn.q_proj.", "self_attn.k_proj.",
    "self_attn.v_proj.", "self_attn.o_proj.",         "self_attn.q_norm.", "self_attn.k_norm."};
constexpr std::string_view kDense[] = {"mlp.gate_proj.", "mlp.up_proj.", "mlp.down_proj."};
constexpr std::string_view kMoe[] = {"mlp.gate.", "mlp.experts."};

bool begins_with_one_of(std::string_view name, std::span<const std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return name.starts_with(beginning); });
}

/// `name` without the layer's number in front.
bool is_used_or_harmless(std::string_view name, const ModelConfig& config, bool moe) {
  if (name.ends_with("_scale") || name.ends_with("rotary_emb.inv_freq")) return true;
  if (name.ends_with(".bias") && !(config.attention_bias && name.starts_with("self_attn."))) return false;
  return begins_with_one_of(name, kInEveryLayer) ||
         (moe ? begins_with_one_of(name, kMoe) : begins_with_one_of(name, kDense));
}

[[noreturn]] void refuse(const Tensor& tensor, const std::string& why) {
  throw Error(ErrorCode::kBadFile, tensor.file + ": tensor '" + tensor.name + "' would not be used: " + why +
                                       ". Is this the config.json that came with the weights?");
}

}  // namespace

void refuse_unused_layer_weights(const Checkpoint& checkpoint, const ModelConfig& config) {
  const int64_t ahead = checkpoint.config().integer_or({"num_nextn_predict_layers"}, 0, 10000, 0);
  for (const Tensor* tensor : checkpoint.tensors()) {
    std::string_view name = tensor->name;
    if (!name.starts_with(kLayers)) continue;
    name.remove_prefix(kLayers.size());
    int64_t layer = -1;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
    if (error != std::errc() || layer < 0 || end == name.data() + name.size() || *end != '.') continue;
    if (layer >= config.layers + ahead) {
      refuse(*tensor, "config.json's num_hidden_layers is " + std::to_string(config.layers));
    }
    if (layer >= config.layers) continue;
    name.remove_prefix(static_cast<size_t>(end - name.data()) + 1);
    if (!is_used_or_harmless(name, config, config.is_moe[static_cast<size_t>(layer)])) {
      refuse(*tensor, "a layer of this family has no such part, or config.json leaves it out");
    }
  }
}

}  // namespace sluice::qwen3_moe
