// Reads a decoder's weights.
#include "models/moe_decoder/weights.h"

#include <mutex>
#include <string>

#include "base/error.h"
#include "base/thread_pool.h"
#include "models/moe_decoder/names.h"
#include "models/moe_decoder/unused.h"

namespace sluice::moe_decoder {
namespace {

/// Adds up the bytes that were read and hands them on, one caller at a time.
class Progress {
 public:
  Progress(const LoadOptions& options, uint64_t total) : options_(options), total_(total) {}
  void add(size_t bytes) {
    if (!options_.progress) return;
    const std::lock_guard lock(mutex_);
    options_.progress(done_ += bytes, total_);
  }

 private:
  const LoadOptions& options_;
  const uint64_t total_;
  std::mutex mutex_;
  uint64_t done_ = 0;
};

Attention read_attention(DenseWeightReader& store, const std::string& name, const DecoderConfig& c) {
  Attention a;
  const int64_t q_width = c.heads * c.head_dim, kv_width = c.kv_heads * c.head_dim;
  a.q = store.matrix(name + "q_proj", q_width, c.hidden);
  a.k = store.matrix(name + "k_proj", kv_width, c.hidden);
  a.v = store.matrix(name + "v_proj", kv_width, c.hidden);
  a.o = store.matrix(name + "o_proj", c.hidden, q_width);
  if (c.qk_norm != QkNorm::kNone) {
    const bool whole = c.qk_norm == QkNorm::kWhole;
    a.q_norm = store.vector(name + "q_norm.weight", whole ? q_width : c.head_dim);
    a.k_norm = store.vector(name + "k_norm.weight", whole ? kv_width : c.head_dim);
  }
  if (c.qkv_bias) {
    a.q_bias = store.vector(name + "q_proj.bias", q_width);
    a.k_bias = store.vector(name + "k_proj.bias", kv_width);
    a.v_bias = store.vector(name + "v_proj.bias", kv_width);
  }
  if (c.o_bias) a.o_bias = store.vector(name + "o_proj.bias", c.hidden);
  return a;
}

DenseMlp read_dense(DenseWeightReader& store, const std::string& name, int64_t hidden, int64_t width) {
  return {store.matrix(name + "gate_proj", width, hidden), store.matrix(name + "up_proj", width, hidden),
          store.matrix(name + "down_proj", hidden, width)};
}

std::optional<SharedExpert> read_shared(DenseWeightReader& store, const std::string& name,
                                        const DecoderConfig& c) {
  if (c.shared_intermediate == 0) return std::nullopt;
  return SharedExpert{read_dense(store, name + "shared_expert.", c.hidden, c.shared_intermediate),
                      store.matrix(name + "shared_expert_gate", 1, c.hidden)};
}

/// A layer's router gives its routes, and the next MoE layer's a forecast of that one's.
void read_routers(DenseWeightReader& reader, const DecoderConfig& c, const Names& all,
                  std::vector<Layer>& layers) {
  MoeMlp* before = nullptr;
  for (size_t l = 0; l < layers.size(); ++l) {
    if (!layers[l].moe) continue;
    MoeMlp& moe = *layers[l].moe;
    moe.router = reader.matrix(all.moe(static_cast<int64_t>(l)) + "gate", c.experts, c.hidden);
    // Scores decide which experts run: rounding would make other choices of near ones.
    moe.router.compute = Compute::kF32;
    if (before != nullptr) before->next_router = moe.router;
    before = &moe;
  }
}

/// Finds every tensor of the experts before the first byte is read: what is missing is said at once. Empty
/// for dense layers.
std::vector<std::optional<StoredExperts>> find_experts(const Checkpoint& checkpoint, const DecoderConfig& c,
                                                       const Names& names) {
  std::vector<std::optional<StoredExperts>> stored(static_cast<size_t>(c.layers));
  for (size_t l = 0; l < stored.size(); ++l) {
    if (!c.is_moe[l]) continue;
    stored[l] = StoredExperts::find(checkpoint, names.moe(static_cast<int64_t>(l)) + "experts", c.experts,
                                    c.hidden, c.expert_intermediate, c.projections);
  }
  return stored;
}

uint64_t row_bytes_of(const std::vector<std::optional<StoredExperts>>& stored) {
  uint64_t bytes = 0;
  for (const auto& layer : stored) {
    if (layer) bytes += static_cast<uint64_t>(layer->experts()) * layer->layout().row_bytes;
  }
  return bytes;
}

/// `order`: of the MoE layers; empty: their own.
std::vector<LayerRows> read_experts(HostRowReader& reader,
                                    const std::vector<std::optional<StoredExperts>>& stored,
                                    std::span<const int64_t> order) {
  std::vector<const StoredExperts*> layers;
  for (const std::optional<StoredExperts>& layer : stored) {
    if (layer) layers.push_back(&*layer);
  }
  SLUICE_CHECK(order.empty() || order.size() == layers.size());
  std::vector<LayerRows> rows(layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    const size_t l = order.empty() ? i : static_cast<size_t>(order[i]);
    SLUICE_CHECK(rows.at(l).experts == 0);
    rows[l] = reader.read(static_cast<int64_t>(l), *layers[l]);
  }
  return rows;
}

}  // namespace

Weights read_weights(const Checkpoint& checkpoint, const DecoderConfig& c, Device& device, Stream& stream,
                     const LoadOptions& options, std::span<const int64_t> expert_order) {
  const Names names = find_names(checkpoint, c);
  refuse_unused_layer_weights(checkpoint, c, names);
  Progress progress(options, checkpoint.total_bytes());
  ThreadPool pool(options.threads);
  const std::vector<std::optional<StoredExperts>> stored = find_experts(checkpoint, c, names);
  check_host_memory(row_bytes_of(stored), options.host_rows);
  HostRowReader expert_reader(device, pool, options.host_rows, [&](size_t bytes) { progress.add(bytes); });
  DenseWeightReader reader(checkpoint, device, stream, options.compute,
                           [&](size_t bytes) { progress.add(bytes); });
  Weights w;
  w.layers.resize(stored.size());
  w.embedding = reader.matrix(names.model + "embed_tokens", c.vocab_size, c.hidden);
  w.head = c.tied_embeddings ? w.embedding : reader.matrix(names.head, c.vocab_size, c.hidden);
  w.final_norm = reader.vector(names.model + "norm.weight", c.hidden);
  w.rope_frequencies = reader.constants(c.rotary.frequencies);
  int64_t moe_layers = 0;
  for (size_t l = 0; l < w.layers.size(); ++l) {
    Layer& layer = w.layers[l];
    const std::string name = names.layer(static_cast<int64_t>(l));
    layer.input_norm = reader.vector(name + "input_layernorm.weight", c.hidden);
    layer.post_attention_norm = reader.vector(name + "post_attention_layernorm.weight", c.hidden);
    layer.attention = read_attention(reader, name + "self_attn.", c);
    if (!stored[l]) {
      layer.dense = read_dense(reader, name + "mlp.", c.hidden, c.dense_intermediate);
      continue;
    }
    MoeMlp& moe = layer.moe.emplace();
    moe.index = moe_layers++;
    moe.shared = read_shared(reader, names.moe(static_cast<int64_t>(l)), c);
  }
  w.expert_rows = read_experts(expert_reader, stored, expert_order);
  for (LayerRows& rows : w.expert_rows) rows.compute = options.compute;
  w.host_rows = expert_reader.finish(w.expert_rows);
  read_routers(reader, c, names, w.layers);
  w.dense = reader.take_buffers();
  return w;
}

}  // namespace sluice::moe_decoder
