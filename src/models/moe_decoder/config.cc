// Reads config.json in the spellings of transformers 4 and 5.
#include "models/moe_decoder/config.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "models/moe_decoder/refused_fields.h"

namespace sluice::moe_decoder {
namespace {

[[noreturn]] void unsupported(const Config& config, const std::string& what) {
  throw Error(ErrorCode::kUnsupported, config.file() + ": " + what);
}

[[noreturn]] void contradictory(const Config& config, const std::string& what) {
  throw Error(ErrorCode::kBadFile, config.file() + ": " + what);
}

// A window that is as long as the model's positions never cuts anything off.
void refuse_sliding_window(const Config& config, int64_t max_positions) {
  if (config.boolean_or({"use_sliding_window"}, true)) {
    const int64_t window = config.integer_or({"sliding_window"}, 0, int64_t{1} << 40, 0);
    if (window > 0 && window < max_positions) {
      unsupported(config, "sliding_window " + std::to_string(window) +
                              " is not supported; the known form of attention is: full_attention");
    }
  }
  for (const std::string& type : config.strings({"layer_types"})) {
    if (type == "full_attention") continue;
    unsupported(config, "layer_types: \"" + type + "\"; the known one is: full_attention");
  }
}

void read_attention(const Config& config, DecoderConfig& c) {
  c.heads = config.integer({"num_attention_heads"}, 1, 65536);
  c.kv_heads = config.integer_or({"num_key_value_heads"}, 1, 65536, c.heads);
  c.head_dim = config.integer_or({"head_dim"}, 2, 65536, std::max<int64_t>(2, c.hidden / c.heads));
  if (c.heads % c.kv_heads != 0) {
    contradictory(config, "num_attention_heads " + std::to_string(c.heads) +
                              " is no multiple of num_key_value_heads " + std::to_string(c.kv_heads));
  }
  if (c.head_dim % 2 != 0) contradictory(config, "head_dim must be even");
}

}  // namespace

Config language_config(const Config& config) {
  return config.has({"text_config"}) ? config.object({"text_config"}) : config;
}

DecoderConfig read_common(const Config& top, const Defaults& defaults) {
  const Config config = language_config(top);
  DecoderConfig c;
  c.vocab_size = config.integer({"vocab_size"}, 1, kMostWide);
  c.hidden = config.integer({"hidden_size"}, 1, kMostWide);
  c.layers = config.integer({"num_hidden_layers"}, 1, 10000);
  read_attention(config, c);
  c.experts = config.integer({"num_experts", "num_local_experts"}, 1, 65536);
  c.top_k = config.integer({"num_experts_per_tok"}, 1, 65536);
  if (c.top_k > c.experts) {
    contradictory(config, "num_experts_per_tok " + std::to_string(c.top_k) + " is more than the " +
                              std::to_string(c.experts) + " experts of a layer");
  }
  c.max_positions = config.integer({"max_position_embeddings"}, 1, int64_t{1} << 31);
  c.rms_epsilon = static_cast<float>(config.number_or({"rms_norm_eps"}, 0.0, 1.0, defaults.rms_epsilon));
  c.rotary = read_rotary(config, c.head_dim, c.max_positions, defaults.rope_theta);
  c.tied_embeddings =
      config.boolean_or({"tie_word_embeddings"}, top.boolean_or({"tie_word_embeddings"}, false));
  c.is_moe.assign(static_cast<size_t>(c.layers), true);
  const std::string activation = config.string_or({"hidden_act"}, "silu");
  if (activation != "silu") unsupported(config, "activation \"" + activation + "\"; the known one is: silu");
  const std::string scores = config.string_or({"scoring_func"}, "softmax");
  if (scores != "softmax") {
    unsupported(config, "router function \"" + scores + "\"; the known one is: softmax");
  }
  refuse_sliding_window(config, c.max_positions);
  refuse_fields_without_effect(config);
  return c;
}

void read_dense_layers(const Config& top, DecoderConfig& c) {
  const Config config = language_config(top);
  const int64_t step = config.integer_or({"decoder_sparse_step"}, 1, kMostWide, 1);
  const std::vector<int64_t> dense = config.integers({"mlp_only_layers"});
  for (const int64_t l : dense) {
    if (l >= 0 && l < c.layers) continue;
    throw Error(ErrorCode::kBadFile, config.file() + ": mlp_only_layers: there is no layer " +
                                         std::to_string(l) + " of " + std::to_string(c.layers));
  }
  for (int64_t l = 0; l < c.layers; ++l) {
    c.is_moe[static_cast<size_t>(l)] =
        (l + 1) % step == 0 && std::find(dense.begin(), dense.end(), l) == dense.end();
  }
  const bool all_moe = std::find(c.is_moe.begin(), c.is_moe.end(), false) == c.is_moe.end();
  c.dense_intermediate = all_moe ? 0 : config.integer({"intermediate_size"}, 1, kMostWide);
}

}  // namespace sluice::moe_decoder
