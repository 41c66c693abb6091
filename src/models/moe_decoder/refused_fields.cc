// A list by the kind of value.
#include "models/moe_decoder/refused_fields.h"

#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice::moe_decoder {
namespace {

[[noreturn]] void refuse(const Config& config, std::string_view field, const std::string& value,
                         const char* known) {
  throw Error(ErrorCode::kUnsupported, config.file() + ": " + std::string(field) + value +
                                           " is not supported; the known value is: " + known);
}

void refuse_above(const Config& config, std::string_view field, int64_t most, const char* known) {
  const int64_t value = config.integer_or({field}, 0, int64_t{1} << 40, 0);
  if (value > most) refuse(config, field, " " + std::to_string(value), known);
}

}  // namespace

void refuse_fields_without_effect(const Config& config) {
  for (const std::string_view field : {"clip_qkv", "attn_logit_softcapping", "final_logit_softcapping"}) {
    if (config.has({field})) refuse(config, field, "", "null");
  }
  if (config.boolean_or({"mlp_bias"}, false)) refuse(config, "mlp_bias", " true", "false");
  for (const std::string_view field : {"n_group", "topk_group"}) refuse_above(config, field, 1, "1");
  refuse_above(config, "first_k_dense_replace", 0, "0");
  const double scale = config.number_or({"routed_scaling_factor"}, 0, 1e6, 1);
  if (scale != 1) refuse(config, "routed_scaling_factor", " " + std::to_string(scale), "1");
}

void refuse_shared_expert(const Config& config) {
  for (const std::string_view field : {"shared_expert_intermediate_size", "n_shared_experts"}) {
    refuse_above(config, field, 0, "0");
  }
}

}  // namespace sluice::moe_decoder
