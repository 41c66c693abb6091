// Reads config.json of Qwen2-MoE.
#include "models/qwen2_moe/qwen2_moe.h"

#include "checkpoint/checkpoint.h"
#include "models/moe_decoder/decoder.h"

namespace sluice {
namespace {

using namespace moe_decoder;

DecoderConfig read_config(const Config& top) {
  const Config config = language_config(top);
  DecoderConfig c = read_common(top, {.rms_epsilon = 1e-6, .rope_theta = 10000});
  c.family = "qwen2_moe";
  c.qkv_bias = config.boolean_or({"qkv_bias"}, true);
  c.expert_intermediate = config.integer({"moe_intermediate_size"}, 1, kMostWide);
  c.shared_intermediate = config.integer({"shared_expert_intermediate_size"}, 1, kMostWide);
  c.renormalise = config.boolean_or({"norm_topk_prob"}, false);
  read_dense_layers(top, c);
  return c;
}

}  // namespace

std::unique_ptr<Model> load_qwen2_moe(const Checkpoint& checkpoint, Device& device,
                                      const LoadOptions& options) {
  return load_moe_decoder(checkpoint, read_config(checkpoint.config()), device, options);
}

}  // namespace sluice
