// The layers of a decoder of standard attention and routed experts, as the papers of its families have them:
// Mixtral of Experts (2024), OLMoE (2024), Qwen2 and Qwen3 Technical Reports (2024, 2025).
#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "kernels/attention.h"
#include "kernels/generated_routes.h"
#include "kernels/heads.h"
#include "kernels/linear.h"
#include "kernels/norm.h"
#include "kernels/rope.h"
#include "kernels/router.h"
#include "models/moe_decoder/decoder.h"
#include "models/moe_decoder/weights.h"

namespace sluice {
namespace {

using moe_decoder::DecoderConfig;
using moe_decoder::Layer;
using moe_decoder::QkNorm;
using moe_decoder::Weights;

/// Scratch memory of one layer's work, for up to max_rows tokens. Allocated once; nothing in it outlives a
/// layer.
struct Workspace {
  std::vector<Buffer> buffers;
  float *h, *branch;                // [rows, H]: normalised input, what a block adds
  float *q, *k, *v, *attended;      // [rows, heads * d], [rows, kv_heads * d] twice, [rows, heads * d]
  float *own_logits, *next_logits;  // [rows, E] each, apart
  int32_t* expert_ids;              // [rows, K]
  float* expert_weights;            // [rows, K]
  float *activations, *outputs;     // [rows * K, expert intermediate], [rows * K, H]
  float* dense;                     // [rows, the wider of dense and shared intermediate]
  float* shared_gate;               // [rows]
  float* partials;                  // [attention_partials]: of a device with memory of its own, else null

  Workspace(Device& device, const DecoderConfig& c, int64_t rows) {
    const auto floats = [&](int64_t width) {
      return buffers.emplace_back(device.allocate_array<float>(rows * width, "workspace")).as<float>();
    };
    h = floats(c.hidden);
    branch = floats(c.hidden);
    q = floats(c.heads * c.head_dim);
    k = floats(c.kv_heads * c.head_dim);
    v = floats(c.kv_heads * c.head_dim);
    attended = floats(c.heads * c.head_dim);
    own_logits = floats(c.experts);
    next_logits = floats(c.experts);
    expert_ids =
        buffers.emplace_back(device.allocate_array<int32_t>(rows * c.top_k, "workspace")).as<int32_t>();
    expert_weights = floats(c.top_k);
    activations = floats(c.top_k * c.expert_intermediate);
    outputs = floats(c.top_k * c.hidden);
    dense = floats(std::max(c.dense_intermediate, c.shared_intermediate));
    shared_gate = floats(1);
    partials = nullptr;
    if (device.backend() == Backend::kHost) return;
    const int64_t n = attention_partials(c.heads, c.head_dim);
    partials = buffers.emplace_back(device.allocate_array<float>(n, "workspace")).as<float>();
  }
};

/// What config.json alone tells.
ModelInfo info_of(const DecoderConfig& c, Compute compute) {
  ModelInfo info;
  info.family = c.family;
  info.vocab_size = c.vocab_size;
  info.layers = c.layers;
  info.hidden = c.hidden;
  info.max_positions = c.max_positions;
  info.experts = c.experts;
  info.top_k = c.top_k;
  info.kv = {c.layers, c.kv_heads, c.head_dim, kv_format(compute)};
  for (int64_t l = 0; l < c.layers; ++l) {
    if (c.is_moe[static_cast<size_t>(l)]) info.moe_layers.push_back(l);
  }
  return info;
}

Positions positions_of(const Batch& b) { return {b.first_position, b.positions()}; }

class MoeDecoder final : public Model {
 public:
  MoeDecoder(const Checkpoint& checkpoint, const DecoderConfig& config, Device& device,
             const LoadOptions& options, std::span<const int64_t> expert_order)
      : device_(device),
        config_(config),
        load_stream_(device.make_stream()),
        weights_(
            moe_decoder::read_weights(checkpoint, config_, device, *load_stream_, options, expert_order)),
        max_rows_(options.max_rows),
        generated_(options.generated_routes),
        workspace_(device, config_, options.max_rows) {
    fill_info(options.compute);
  }

  const ModelInfo& info() const override { return info_; }
  int64_t max_rows() const override { return max_rows_; }
  std::span<const LayerRows> expert_rows() const override { return weights_.expert_rows; }

  std::unique_ptr<BatchMemory> make_batch_memory(BatchUse use, int64_t rows) const override {
    return std::make_unique<BatchMemory>(device_, use, rows, config_.hidden, config_.head_dim / 2,
                                         config_.top_k);
  }

  void embed(Stream& stream, Batch& b) override {
    SLUICE_CHECK(b.rows >= 1 && b.rows <= max_rows_ && b.first_row + b.rows <= b.memory->max_rows);
    embedding(stream, b.ids(), b.rows, weights_.embedding, b.x());
    rope_table(stream, positions_of(b), b.rows, weights_.rope_frequencies, config_.head_dim / 2, b.cos(),
               b.sin());
  }

  std::optional<MoeBlock> layer_to_experts(Stream& stream, int64_t l, Batch& b,
                                           MoeExecutor& experts) override {
    const DecoderConfig& c = config_;
    const Layer& layer = weights_.layers[static_cast<size_t>(l)];
    Workspace& w = workspace_;
    rms_norm(stream, b.x(), b.rows, c.hidden, layer.input_norm, c.rms_epsilon, w.h);
    attention_block(stream, layer.attention, b, b.cache->layer(l));
    float* h = layer.moe && b.moe_x() != nullptr ? b.moe_x() : w.h;
    rms_norm(stream, b.x(), b.rows, c.hidden, layer.post_attention_norm, c.rms_epsilon, h);
    if (layer.moe) return route(stream, *layer.moe, b, h, experts);
    linear_parts(stream, w.h, b.rows, {{.w = layer.dense->gate, .y = w.dense, .up = layer.dense->up}});
    linear_parts(stream, w.dense, b.rows, {{.w = layer.dense->down, .y = b.x(), .add = true}});
    return std::nullopt;
  }

  void layer_from_experts(Stream& stream, Batch& b, const MoeBlock& block) override {
    add(stream, b.x(), block.y, b.rows * config_.hidden);
  }

  void logits(Stream& stream, const Batch& b, int64_t rows, float* logits) override {
    SLUICE_CHECK(rows >= 1 && rows <= b.rows);
    const float* last = b.x() + (b.rows - rows) * config_.hidden;
    rms_norm(stream, last, rows, config_.hidden, weights_.final_norm, config_.rms_epsilon, workspace_.h);
    linear(stream, workspace_.h, rows, weights_.head, nullptr, logits);
  }

 private:
  void attention_block(Stream& stream, const moe_decoder::Attention& a, const Batch& b, const KvLayer& kv) {
    const DecoderConfig& c = config_;
    Workspace& w = workspace_;
    linear_parts(stream, w.h, b.rows,
                 {{.w = a.q, .bias = a.q_bias, .y = w.q},
                  {.w = a.k, .bias = a.k_bias, .y = w.k},
                  {.w = a.v, .bias = a.v_bias, .y = w.v}});
    const bool norm_heads = c.qk_norm == QkNorm::kEachHead;
    if (c.qk_norm == QkNorm::kWhole) {
      rms_norm(stream, w.q, b.rows, c.heads * c.head_dim, a.q_norm, c.rms_epsilon, w.q);
      rms_norm(stream, w.k, b.rows, c.kv_heads * c.head_dim, a.k_norm, c.rms_epsilon, w.k);
    }
    heads_to_cache(stream,
                   {.q = w.q,
                    .k = w.k,
                    .v = w.v,
                    .rows = b.rows,
                    .heads = c.heads,
                    .q_norm = norm_heads ? a.q_norm : nullptr,
                    .k_norm = norm_heads ? a.k_norm : nullptr,
                    .epsilon = c.rms_epsilon,
                    .cos = b.cos(),
                    .sin = b.sin(),
                    .half = c.head_dim / 2},
                   positions_of(b), kv);
    // Queries and keys are scaled alike, and whole heads are rotated: their products take both factors.
    const auto factor = static_cast<float>(c.rotary.attention_factor * c.rotary.attention_factor);
    const float scale = factor / std::sqrt(static_cast<float>(c.head_dim));
    attention(stream, w.q, b.rows, c.heads, positions_of(b), scale, kv, w.partials, w.attended);
    linear_parts(stream, w.attended, b.rows, {{.w = a.o, .bias = a.o_bias, .y = b.x(), .add = true}});
  }

  MoeBlock route(Stream& stream, const moe_decoder::MoeMlp& moe, const Batch& b, const float* h,
                 MoeExecutor& experts) {
    const DecoderConfig& c = config_;
    Workspace& w = workspace_;
    const bool own = b.moe_x() != nullptr;
    int32_t* ids = own ? b.expert_ids() : w.expert_ids;
    float* weights = own ? b.expert_weights() : w.expert_weights;
    const bool ahead = experts.wants_lookahead() && moe.next_router.data != nullptr;
    Stream& next = ahead ? experts.fork_lookahead(stream) : stream;
    if (ahead && &next == &stream) {
      linear_parts(stream, h, b.rows,
                   {{.w = moe.router, .y = w.own_logits}, {.w = moe.next_router, .y = w.next_logits}});
    } else {
      if (ahead) linear(next, h, b.rows, moe.next_router, nullptr, w.next_logits);
      linear(stream, h, b.rows, moe.router, nullptr, w.own_logits);
    }
    if (generated_) {
      generate_router_logits(stream, *generated_, moe.index, b.ids(), b.positions(), b.rows, c.experts, false,
                             w.own_logits);
      if (ahead) {
        generate_router_logits(next, *generated_, moe.index + 1, b.ids(), b.positions(), b.rows, c.experts,
                               true, w.next_logits);
      }
    }
    router_top_k(stream, w.own_logits, b.rows, c.experts, c.top_k, c.renormalise, ids, weights);
    MoeBlock block;
    block.input.layer = moe.index;
    block.input.x = h;
    block.input.routes = {ids, weights, b.rows, c.top_k};
    block.input.next_logits = ahead ? w.next_logits : nullptr;
    block.input.activations = w.activations;
    block.input.outputs = b.outputs() != nullptr ? b.outputs() : w.outputs;
    block.y = own ? b.moe_x() : w.branch;  // sums no longer need the products' input
    if (moe.shared) {
      block.input.beside = [this, &shared = *moe.shared, b, h](Stream& s) { shared_expert(s, shared, b, h); };
    }
    return block;
  }

  /// Adds sigmoid(gate . h) * shared(h) to the residual stream; the routed experts' sum follows.
  void shared_expert(Stream& stream, const moe_decoder::SharedExpert& shared, const Batch& b,
                     const float* h) {
    Workspace& w = workspace_;
    linear_parts(
        stream, h, b.rows,
        {{.w = shared.gate, .y = w.shared_gate}, {.w = shared.mlp.gate, .y = w.dense, .up = shared.mlp.up}});
    linear_parts(stream, w.dense, b.rows,
                 {{.w = shared.mlp.down, .y = b.x(), .add = true, .gate = w.shared_gate}});
  }

  void fill_info(Compute compute) {
    info_ = info_of(config_, compute);
    for (const Buffer& buffer : weights_.dense) info_.dense_bytes += buffer.bytes();
    info_.host_rows = weights_.host_rows;
    for (const LayerRows& rows : weights_.expert_rows) {
      const std::string format(name_of(rows.layout.format));
      if (info_.expert_format.find(format) == std::string::npos) {
        info_.expert_format += (info_.expert_format.empty() ? "" : ", ") + format;
      }
      info_.expert_bytes += rows.bytes();
    }
  }

  Device& device_;
  const DecoderConfig config_;
  const std::unique_ptr<Stream> load_stream_;
  const Weights weights_;
  const int64_t max_rows_;
  const std::optional<RouteGenerator> generated_;
  Workspace workspace_;
  ModelInfo info_;
};

}  // namespace

std::unique_ptr<Model> load_moe_decoder(const Checkpoint& checkpoint, const DecoderConfig& config,
                                        Device& device, const LoadOptions& options) {
  const ModelInfo info = info_of(config, options.compute);
  if (options.before_weights) options.before_weights(info);
  std::vector<int64_t> order;
  if (options.expert_order) order = options.expert_order(info);
  return std::make_unique<MoeDecoder>(checkpoint, config, device, options, order);
}

}  // namespace sluice
