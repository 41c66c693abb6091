// What the engine knows of a model: its sizes, and one function that runs tokens through all layers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "kv/kv_cache.h"

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
  KvShape kv;
};

/// Sees the experts that were chosen: layer (the model's number), ids [rows, k] in descending score.
using RouteObserver = std::function<void(int64_t layer, std::span<const int32_t> ids, int64_t rows)>;

/// Tokens of one sequence that follow the `cache`.
struct ForwardInput {
  std::span<const int32_t> ids;  // inside the vocabulary
  int64_t logit_rows = 1;        // logits are computed for the last logit_rows tokens
  const RouteObserver* routes = nullptr;
};

/// A loaded model. One forward at a time.
class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelInfo& info() const = 0;
  /// Most tokens that one forward takes (its workspace is allocated at load).
  virtual int64_t max_rows() const = 0;
  /// Runs input.ids at positions cache.length() ... and appends to the cache. logits [logit_rows,
  /// vocab_size]. The result for a token depends on the tokens before it alone, not on how they were cut into
  /// calls, to the last bit.
  virtual void forward(Stream& stream, const ForwardInput& input, KvCache& cache, float* logits) = 0;
};

struct LoadOptions {
  int64_t max_rows = 512;
  int threads = 0;                                              // for reading; 0: all usable cores
  std::function<void(uint64_t done, uint64_t total)> progress;  // bytes; called from one thread at a time
};

/// Loads the checkpoint's family. Throws Error: kUnsupported for an unknown architecture (the message lists
/// the known ones), kBadFile, kNotFound, kOutOfMemory.
std::unique_ptr<Model> load_model(const Checkpoint& checkpoint, Device& device, const LoadOptions& options);

}  // namespace sluice
