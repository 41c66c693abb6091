// Qwen3-MoE: the layers, as the model's paper has them (Qwen3 Technical Report, 2025).
#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "kernels/attention.h"
#include "kernels/linear.h"
#include "kernels/norm.h"
#include "kernels/rope.h"
#include "kernels/router.h"
#include "models/qwen3_moe/qwen3_moe.h"
#include "models/qwen3_moe/weights.h"

namespace sluice {
namespace {

using qwen3_moe::Layer;
using qwen3_moe::ModelConfig;
using qwen3_moe::Weights;

/// The activations of one forward, for up to max_rows tokens. Allocated once.
struct Workspace {
  std::vector<Buffer> buffers;
  int32_t *ids, *expert_ids;              // [rows], [rows, K]
  float *x, *h, *branch;                  // [rows, H]: residual stream, normalised input, what a block adds
  float *q, *k, *v, *attended;            // [rows, heads * d], [rows, kv_heads * d] twice, [rows, heads * d]
  float *cos, *sin;                       // [rows, d / 2]
  float *router_logits, *expert_weights;  // [rows, E], [rows, K]
  float* inner;  // [rows, 3 * dense intermediate]: gate and up apart, or the experts' scratch

  Workspace(Device& device, const ModelConfig& c, int64_t rows) {
    const auto floats = [&](int64_t width) {
      return buffers.emplace_back(device.allocate_array<float>(rows * width, "workspace")).as<float>();
    };
    const auto integers = [&](int64_t width) {
      return buffers.emplace_back(device.allocate_array<int32_t>(rows * width, "workspace")).as<int32_t>();
    };
    ids = integers(1);
    expert_ids = integers(c.top_k);
    x = floats(c.hidden);
    h = floats(c.hidden);
    branch = floats(c.hidden);
    q = floats(c.heads * c.head_dim);
    k = floats(c.kv_heads * c.head_dim);
    v = floats(c.kv_heads * c.head_dim);
    attended = floats(c.heads * c.head_dim);
    cos = floats(c.head_dim / 2);
    sin = floats(c.head_dim / 2);
    router_logits = floats(c.experts);
    expert_weights = floats(c.top_k);
    inner = floats(std::max(3 * c.dense_intermediate,
                            expert_scratch_floats(1, c.top_k, c.hidden, c.expert_intermediate)));
  }
};

class Qwen3Moe final : public Model {
 public:
  Qwen3Moe(const Checkpoint& checkpoint, Device& device, const LoadOptions& options)
      : device_(device),
        config_(qwen3_moe::read_config(checkpoint.config())),
        load_stream_(device.make_stream()),
        weights_(qwen3_moe::read_weights(checkpoint, config_, device, *load_stream_, options)),
        max_rows_(options.max_rows),
        workspace_(device, config_, options.max_rows) {
    fill_info();
  }

  const ModelInfo& info() const override { return info_; }
  int64_t max_rows() const override { return max_rows_; }

  void forward(Stream& stream, const ForwardInput& input, KvCache& cache, float* logits) override {
    const auto rows = static_cast<int64_t>(input.ids.size());
    SLUICE_CHECK(rows >= 1 && rows <= max_rows_ && input.logit_rows <= rows);
    const ModelConfig& c = config_;
    Workspace& w = workspace_;
    stream.copy("ids", w.ids, input.ids.data(), input.ids.size_bytes());
    embedding(stream, w.ids, rows, weights_.embedding, w.x);
    rope_table(stream, cache.length(), rows, weights_.rope_frequencies, c.head_dim / 2, w.cos, w.sin);
    for (int64_t l = 0; l < c.layers; ++l) {
      const Layer& layer = weights_.layers[static_cast<size_t>(l)];
      rms_norm(stream, w.x, rows, c.hidden, layer.input_norm, c.rms_epsilon, w.h);
      attention_block(stream, layer.attention, rows, cache.length(), cache.layer(l));
      add(stream, w.x, w.branch, rows * c.hidden);
      rms_norm(stream, w.x, rows, c.hidden, layer.post_attention_norm, c.rms_epsilon, w.h);
      if (layer.moe) {
        moe_block(stream, *layer.moe, rows);
        if (input.routes != nullptr) report_routes(stream, l, rows, *input.routes);
      } else {
        dense_block(stream, *layer.dense, rows);
      }
      add(stream, w.x, w.branch, rows * c.hidden);
    }
    cache.advance(rows);
    if (input.logit_rows == 0) return;
    const float* last = w.x + (rows - input.logit_rows) * c.hidden;
    rms_norm(stream, last, input.logit_rows, c.hidden, weights_.final_norm, c.rms_epsilon, w.h);
    linear(stream, w.h, input.logit_rows, weights_.head, nullptr, logits);
  }

 private:
  void attention_block(Stream& stream, const qwen3_moe::Attention& a, int64_t rows, int64_t position,
                       const KvLayer& kv) {
    const ModelConfig& c = config_;
    Workspace& w = workspace_;
    linear(stream, w.h, rows, a.q, a.q_bias, w.q);
    linear(stream, w.h, rows, a.k, a.k_bias, w.k);
    linear(stream, w.h, rows, a.v, a.v_bias, w.v);
    rms_norm(stream, w.q, rows * c.heads, c.head_dim, a.q_norm, c.rms_epsilon, w.q);
    rms_norm(stream, w.k, rows * c.kv_heads, c.head_dim, a.k_norm, c.rms_epsilon, w.k);
    rope(stream, w.q, rows, c.heads, c.head_dim, w.cos, w.sin, c.head_dim / 2);
    rope(stream, w.k, rows, c.kv_heads, c.head_dim, w.cos, w.sin, c.head_dim / 2);
    kv_store(stream, w.k, w.v, rows, position, kv);
    const float scale = 1.0f / std::sqrt(static_cast<float>(c.head_dim));
    attention(stream, w.q, rows, c.heads, position, scale, kv, w.attended);
    linear(stream, w.attended, rows, a.o, a.o_bias, w.branch);
  }

  void moe_block(Stream& stream, const qwen3_moe::MoeMlp& moe, int64_t rows) {
    const ModelConfig& c = config_;
    Workspace& w = workspace_;
    linear(stream, w.h, rows, moe.router, nullptr, w.router_logits);
    router_top_k(stream, w.router_logits, rows, c.experts, c.top_k, c.renormalise, w.expert_ids,
                 w.expert_weights);
    expert_mlp(stream, w.h, {w.expert_ids, w.expert_weights, rows, c.top_k}, moe.experts, w.inner, w.branch);
  }

  void dense_block(Stream& stream, const qwen3_moe::DenseMlp& mlp, int64_t rows) {
    const int64_t width = config_.dense_intermediate;
    Workspace& w = workspace_;
    float *gate = w.inner, *up = gate + rows * width, *product = up + rows * width;
    linear(stream, w.h, rows, mlp.gate, nullptr, gate);
    linear(stream, w.h, rows, mlp.up, nullptr, up);
    silu_and_multiply(stream, gate, up, rows * width, product);
    linear(stream, product, rows, mlp.down, nullptr, w.branch);
  }

  void report_routes(Stream& stream, int64_t layer, int64_t rows, const RouteObserver& observer) {
    host_ids_.resize(static_cast<size_t>(rows * config_.top_k));
    stream.copy("routes", host_ids_.data(), workspace_.expert_ids, host_ids_.size() * sizeof(int32_t));
    device_.wait(stream, "routes");
    observer(layer, host_ids_, rows);
  }

  void fill_info() {
    const ModelConfig& c = config_;
    info_.family = "qwen3_moe";
    info_.vocab_size = c.vocab_size;
    info_.layers = c.layers;
    info_.hidden = c.hidden;
    info_.max_positions = c.max_positions;
    info_.experts = c.experts;
    info_.top_k = c.top_k;
    info_.kv = {c.layers, c.kv_heads, c.head_dim};
    for (const Buffer& buffer : weights_.dense) info_.dense_bytes += buffer.bytes();
    for (int64_t l = 0; l < c.layers; ++l) {
      const Layer& layer = weights_.layers[static_cast<size_t>(l)];
      if (!layer.moe) continue;
      info_.moe_layers.push_back(l);
      info_.expert_format = name_of(layer.moe->rows.layout.format);
      info_.expert_bytes += layer.moe->rows.bytes();
    }
  }

  Device& device_;
  const ModelConfig config_;
  const std::unique_ptr<Stream> load_stream_;
  const Weights weights_;
  const int64_t max_rows_;
  Workspace workspace_;
  ModelInfo info_;
  std::vector<int32_t> host_ids_;
};

}  // namespace

std::unique_ptr<Model> load_qwen3_moe(const Checkpoint& checkpoint, Device& device,
                                      const LoadOptions& options) {
  return std::make_unique<Qwen3Moe>(checkpoint, device, options);
}

}  // namespace sluice
