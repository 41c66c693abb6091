// What the engine knows of a model: its sizes, and functions that run a batch of tokens layer by layer.
//
// The engine decides the order: all layers of one batch, one layer of several batches (layer-major prefill),
// or a decode step between two layers of a prefill. A batch therefore owns its residual stream; scratch
// memory is the model's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "experts/executor.h"
#include "experts/host_rows.h"
#include "kernels/generated_routes.h"
#include "kernels/matrix.h"
#include "kv/kv_cache.h"
#include "models/batch.h"

namespace sluice {

class Checkpoint;

struct ModelInfo {
  std::string family;  // "qwen3_moe"
  int64_t vocab_size = 0, layers = 0, hidden = 0;
  int64_t max_positions = 0;        // positions that the model was made for
  std::vector<int64_t> moe_layers;  // the model's layer number of each MoE layer
  int64_t experts = 0, top_k = 0;   // in each MoE layer
  std::string expert_format;        // "BF16"
  uint64_t expert_bytes = 0;        // all host rows
  uint64_t dense_bytes = 0;         // everything else
  HostRowReport host_rows;
  KvShape kv;
};

/// A loaded model. Calls on one stream at a time.
class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelInfo& info() const = 0;
  /// Most tokens of a batch (scratch memory is allocated at load).
  virtual int64_t max_rows() const = 0;
  /// The host rows of every MoE layer, for whoever makes experts computable.
  virtual std::span<const LayerRows> expert_rows() const = 0;
  /// Memory of batches of this model, `rows` tokens in all. Throws Error kOutOfMemory.
  virtual std::unique_ptr<BatchMemory> make_batch_memory(BatchUse use, int64_t rows) const = 0;

  /// Sets the batch's residual stream to the embeddings of its tokens.
  virtual void embed(Stream& stream, Batch& batch) = 0;
  /// Runs layer `layer` on the batch up to its routed experts: appends to the batch's cache at its positions,
  /// and routes, and runs the next router too where `experts` want that. Returns what they need to compute;
  /// layer_from_experts() then ends the layer. A layer without routed experts is complete, and nothing is
  /// returned. Scratch memory is good until the next call for another batch, unless the batch has its own.
  virtual std::optional<MoeBlock> layer_to_experts(Stream& stream, int64_t layer, Batch& batch,
                                                   MoeExecutor& experts) = 0;
  virtual void layer_from_experts(Stream& stream, Batch& batch, const MoeBlock& block) = 0;
  /// Logits of the last `rows` tokens, [rows, vocab_size], into device memory.
  virtual void logits(Stream& stream, const Batch& batch, int64_t rows, float* logits) = 0;
};

struct LoadOptions {
  int64_t max_rows = 512;
  Compute compute = Compute::kBf16;  // of products; the KV cache has the same numbers
  int threads = 0;                   // for reading; 0: all usable cores
  HostRowOptions host_rows;
  std::function<void(uint64_t done, uint64_t total)> progress;  // bytes; called from one thread at a time
  /// Sees what config.json says before a weight is read (no formats and bytes yet); may throw to end the
  /// load.
  std::function<void(const ModelInfo&)> before_weights;
  /// The order in which the MoE layers' experts are read: each of them once, the hottest first. Empty: their
  /// own.
  std::function<std::vector<int64_t>(const ModelInfo&)> expert_order;
  /// Where set, scores of routers and forecasts are computed and then replaced by generated ones.
  std::optional<RouteGenerator> generated_routes;
};

/// Loads the checkpoint's family. Throws Error: kUnsupported for an unknown architecture (the message lists
/// the known ones), kBadFile, kNotFound, kOutOfMemory.
std::unique_ptr<Model> load_model(const Checkpoint& checkpoint, Device& device, const LoadOptions& options);

}  // namespace sluice
