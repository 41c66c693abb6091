// Goes through the names of a checkpoint once.
#include "models/moe_decoder/unused.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sluice::moe_decoder {
namespace {

using Beginnings = std::vector<std::string>;

Beginnings parts_of_every_layer(const DecoderConfig& config) {
  Beginnings parts = {"input_layernorm.",  "post_attention_layernorm.", "self_attn.q_proj.",
                      "self_attn.k_proj.", "self_attn.v_proj.",         "self_attn.o_proj."};
  if (config.qk_norm != QkNorm::kNone) {
    parts.insert(parts.end(), {"self_attn.q_norm.", "self_attn.k_norm."});
  }
  return parts;
}

Beginnings parts_of_moe_layers(const DecoderConfig& config, const Names& names) {
  Beginnings parts = {names.moe_block + ".gate.", names.moe_block + ".experts."};
  if (config.shared_intermediate > 0) {
    parts.insert(parts.end(),
                 {names.moe_block + ".shared_expert.", names.moe_block + ".shared_expert_gate."});
  }
  return parts;
}

bool begins_with_one_of(std::string_view name, const Beginnings& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](const std::string& beginning) { return name.starts_with(beginning); });
}

bool is_unknown_bias(std::string_view name, const DecoderConfig& config) {
  if (!name.ends_with(".bias")) return false;
  return name == "self_attn.o_proj.bias" ? !config.o_bias
                                         : !(config.qkv_bias && name.starts_with("self_attn."));
}

[[noreturn]] void refuse(const Tensor& tensor, const std::string& why) {
  throw Error(ErrorCode::kBadFile, tensor.file + ": tensor '" + tensor.name + "' would not be used: " + why +
                                       ". Is this the config.json that came with the weights?");
}

}  // namespace

void refuse_unused_layer_weights(const Checkpoint& checkpoint, const DecoderConfig& config,
                                 const Names& names) {
  const int64_t ahead =
      language_config(checkpoint.config()).integer_or({"num_nextn_predict_layers"}, 0, 10000, 0);
  const std::string layers = names.model + "layers.";
  const Beginnings every = parts_of_every_layer(config), moe = parts_of_moe_layers(config, names);
  const Beginnings dense = {"mlp.gate_proj.", "mlp.up_proj.", "mlp.down_proj."};
  for (const Tensor* tensor : checkpoint.tensors()) {
    std::string_view name = tensor->name;
    if (!name.starts_with(layers)) continue;
    name.remove_prefix(layers.size());
    int64_t layer = -1;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
    if (error != std::errc() || layer < 0 || end == name.data() + name.size() || *end != '.') continue;
    if (layer >= config.layers + ahead) {
      refuse(*tensor, "config.json's num_hidden_layers is " + std::to_string(config.layers));
    }
    if (layer >= config.layers) continue;
    name.remove_prefix(static_cast<size_t>(end - name.data()) + 1);
    if (name.ends_with("_scale") || name.ends_with("rotary_emb.inv_freq")) continue;
    const bool known = begins_with_one_of(name, every) ||
                       begins_with_one_of(name, config.is_moe[static_cast<size_t>(layer)] ? moe : dense);
    if (known && !is_unknown_bias(name, config)) continue;
    refuse(*tensor, "a layer of this family has no such part, or config.json leaves it out");
  }
}

}  // namespace sluice::moe_decoder
