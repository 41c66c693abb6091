// Reads config.json of OLMoE.
#include "models/olmoe/olmoe.h"

#include "checkpoint/checkpoint.h"
#include "models/moe_decoder/decoder.h"
#include "models/moe_decoder/refused_fields.h"

namespace sluice {
namespace {

using namespace moe_decoder;

DecoderConfig read_config(const Config& top) {
  const Config config = language_config(top);
  DecoderConfig c = read_common(top, {.rms_epsilon = 1e-5, .rope_theta = 10000});
  c.family = "olmoe";
  c.qk_norm = QkNorm::kWhole;
  c.qkv_bias = c.o_bias = config.boolean_or({"attention_bias"}, false);
  c.expert_intermediate = config.integer({"intermediate_size"}, 1, kMostWide);
  c.renormalise = config.boolean_or({"norm_topk_prob"}, false);
  refuse_shared_expert(config);
  return c;
}

}  // namespace

std::unique_ptr<Model> load_olmoe(const Checkpoint& checkpoint, Device& device, const LoadOptions& options) {
  return load_moe_decoder(checkpoint, read_config(checkpoint.config()), device, options);
}

}  // namespace sluice
