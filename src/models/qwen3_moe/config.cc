// Reads config.json in the spellings of transformers 4 and 5.
#include "models/qwen3_moe/config.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace sluice::qwen3_moe {
namespace {

constexpr int64_t kMany = int64_t{1} << 24;  // no width of a published model comes near

[[noreturn]] void unsupported(const Config& config, const std::string& what) {
  throw Error(ErrorCode::kUnsupported, config.file() + ": " + what);
}

double read_rope_theta(const Config& config) {
  const Config rope = config.object({"rope_parameters", "rope_scaling"});
  const std::string type = rope.string_or({"rope_type", "type"}, "default");
  if (type != "default") unsupported(config, "rope type \"" + type + "\"; the known one is: default");
  constexpr double kHigh = 1e12;
  if (rope.has({"rope_theta"})) return rope.number({"rope_theta"}, 1.0, kHigh);
  return config.number_or({"rope_theta"}, 1.0, kHigh, 10000.0);
}

std::vector<bool> read_moe_layers(const Config& config, int64_t layers) {
  const int64_t step = config.integer_or({"decoder_sparse_step"}, 1, kMany, 1);
  const std::vector<int64_t> dense = config.integers({"mlp_only_layers"});
  std::vector<bool> is_moe(static_cast<size_t>(layers));
  for (int64_t l = 0; l < layers; ++l) {
    is_moe[static_cast<size_t>(l)] =
        (l + 1) % step == 0 && std::find(dense.begin(), dense.end(), l) == dense.end();
  }
  return is_moe;
}

}  // namespace

ModelConfig read_config(const Config& config) {
  ModelConfig c{};
  c.vocab_size = config.integer({"vocab_size"}, 1, kMany);
  c.hidden = config.integer({"hidden_size"}, 1, kMany);
  c.layers = config.integer({"num_hidden_layers"}, 1, 10000);
  c.heads = config.integer({"num_attention_heads"}, 1, 65536);
  c.kv_heads = config.integer_or({"num_key_value_heads"}, 1, 65536, c.heads);
  c.head_dim = config.integer_or({"head_dim"}, 2, 65536, std::max<int64_t>(2, c.hidden / c.heads));
  c.expert_intermediate = config.integer({"moe_intermediate_size"}, 1, kMany);
  c.experts = config.integer({"num_experts", "num_local_experts"}, 1, 65536);
  c.top_k = config.integer({"num_experts_per_tok"}, 1, c.experts);
  c.max_positions = config.integer({"max_position_embeddings"}, 1, int64_t{1} << 31);
  c.rms_epsilon = static_cast<float>(config.number_or({"rms_norm_eps"}, 0.0, 1.0, 1e-6));
  c.rope_theta = read_rope_theta(config);
  c.renormalise = config.boolean_or({"norm_topk_prob"}, false);
  c.attention_bias = config.boolean_or({"attention_bias"}, false);
  c.tied_embeddings = config.boolean_or({"tie_word_embeddings"}, false);
  c.is_moe = read_moe_layers(config, c.layers);
  const bool all_moe = std::find(c.is_moe.begin(), c.is_moe.end(), false) == c.is_moe.end();
  c.dense_intermediate = all_moe ? 0 : config.integer({"intermediate_size"}, 1, kMany);
  if (c.heads % c.kv_heads != 0) {
    throw Error(ErrorCode::kBadFile, config.file() + ": num_attention_heads " + std::to_string(c.heads) +
                                         " is no multiple of num_key_value_heads " +
                                         std::to_string(c.kv_heads));
  }
  if (c.head_dim % 2 != 0) throw Error(ErrorCode::kBadFile, config.file() + ": head_dim must be even");
  const std::string activation = config.string_or({"hidden_act"}, "silu");
  if (activation != "silu") unsupported(config, "activation \"" + activation + "\"; the known one is: silu");
  if (config.boolean_or({"use_sliding_window"}, false))
    unsupported(config, "use_sliding_window is not supported");
  return c;
}

}  // namespace sluice::qwen3_moe
