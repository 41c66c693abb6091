// Reads config.json of Qwen3-MoE.
#include "models/qwen3_moe/qwen3_moe.h"

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "models/moe_decoder/decoder.h"
#include "models/moe_decoder/refused_fields.h"

namespace sluice {
namespace {

using namespace moe_decoder;

DecoderConfig read_config(const Config& top) {
  const Config config = language_config(top);
  DecoderConfig c = read_common(top, {.rms_epsilon = 1e-6, .rope_theta = 10000});
  c.family = "qwen3_moe";
  c.qk_norm = QkNorm::kEachHead;
  c.qkv_bias = c.o_bias = config.boolean_or({"attention_bias"}, false);
  c.expert_intermediate = config.integer({"moe_intermediate_size"}, 1, kMostWide);
  c.renormalise = config.boolean_or({"norm_topk_prob"}, false);
  read_dense_layers(top, c);
  refuse_shared_expert(config);
  if (!config.boolean_or({"use_qk_norm"}, true)) {
    throw Error(ErrorCode::kUnsupported,
                config.file() + ": use_qk_norm false is not supported; the known value is: true");
  }
  return c;
}

}  // namespace

std::unique_ptr<Model> load_qwen3_moe(const Checkpoint& checkpoint, Device& device,
                                      const LoadOptions& options) {
  return load_moe_decoder(checkpoint, read_config(checkpoint.config()), device, options);
}

}  // namespace sluice
