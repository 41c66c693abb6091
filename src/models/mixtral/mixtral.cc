// Reads config.json of Mixtral.
#include "models/mixtral/mixtral.h"

#include "checkpoint/checkpoint.h"
#include "models/moe_decoder/decoder.h"
#include "models/moe_decoder/refused_fields.h"

namespace sluice {
namespace {

using namespace moe_decoder;

DecoderConfig read_config(const Config& top) {
  const Config config = language_config(top);
  DecoderConfig c = read_common(top, {.rms_epsilon = 1e-5, .rope_theta = 1e6});
  c.family = "mixtral";
  c.expert_intermediate = config.integer({"intermediate_size"}, 1, kMostWide);
  c.renormalise = true;
  refuse_shared_expert(config);
  c.moe_blocks = {"block_sparse_moe", "mlp"};  // as published; as transformers 5 names its modules
  c.projections = {"w1", "w3", "w2"};
  return c;
}

}  // namespace

std::unique_ptr<Model> load_mixtral(const Checkpoint& checkpoint, Device& device,
                                    const LoadOptions& options) {
  return load_moe_decoder(checkpoint, read_config(checkpoint.config()), device, options);
}

}  // namespace sluice
