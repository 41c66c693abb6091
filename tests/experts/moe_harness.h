// A tiny MoE model without the model: scripted inputs go through ResidentExperts, outputs are compared.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "device/explored/explored_device.h"
#include "experts/resident_experts.h"

namespace sluice {

inline constexpr int64_t kLayers = 3, kExperts = 6, kTopK = 2, kHidden = 16, kInner = 16, kMostRows = 18;
inline constexpr int64_t kMostChunks = 3;  // of a layer-major group

/// One forward: its number decides inputs and routes.
struct Batch {
  int number = 0;
  int64_t rows = 1;
  bool padded = false;  // the last row's ids are -1
};

/// What goes into one layer, as one block: x [rows, hidden], weights [rows, k], the next layer's logits
/// [rows, experts], ids [rows, k].
struct LayerInput {
  std::vector<float> numbers;
  std::vector<int32_t> ids;
};
const LayerInput& input_of(const Batch& batch, int64_t layer);
/// y [rows, hidden] by experts read straight from host memory.
const std::vector<float>& expected_output(const Batch& batch, int64_t layer);
/// The host rows that all schedules share; `staged`: all but those of layer 0 are not page-locked.
std::span<const LayerRows> shared_rows(bool staged = false);

/// Runs forwards on an explored device. Nothing waits before finish() but what the executor itself waits for.
class MoeHarness {
 public:
  MoeHarness(ExploredDevice& device, const ExpertSettings& settings, int64_t layers = kLayers,
             bool staged = false);

  /// Layers [from, to) of a batch, between begin and end calls of the caller.
  void layers(const Batch& batch, int64_t from, int64_t to);
  void decode(const Batch& batch);
  /// `between` is called after each layer but the last.
  void prefill(const Batch& batch, const std::function<void(int64_t layer)>& between = {});
  /// The chunks pass each layer together; all but the last have equal rows. `between` is called between the
  /// chunks of a layer and between layers.
  void prefill_group(const std::vector<Batch>& chunks,
                     const std::function<void(int64_t layer)>& between = {});
  /// A group whose layer `layer` throws at its `wait`-th wait; the layers before it ran.
  void give_up_group_inside(const std::vector<Batch>& chunks, int64_t layer, int wait);
  /// A prefill whose layer `layer` throws at its `wait`-th wait; the layers before it ran.
  void give_up_inside(const Batch& batch, int64_t layer, int wait);
  /// The same with a decode step, at the layer's first wait.
  void give_up_decode(const Batch& batch, int64_t layer);
  /// Waits, compares all outputs and looks at what checks and audit found.
  void finish();

  ResidentExperts& experts() { return experts_; }

 private:
  struct Output {
    Batch batch;
    int64_t layer = 0;
    std::vector<float> y;
  };
  void fail_inside(const Batch& batch, int64_t layer, int wait);
  const float* next_router(const float* input, int64_t n);
  MoeInput upload(const Batch& batch, int64_t layer, int64_t window = kMostChunks);
  void keep_output(const Batch& batch, int64_t layer, const float* y);
  void begin_group(const std::vector<Batch>& chunks);
  void group_layer(Stream& stream, const std::vector<Batch>& chunks, int64_t layer,
                   const std::function<void(int64_t)>& between);

  ExploredDevice& device_;
  std::unique_ptr<Stream> compute_;
  std::unique_ptr<Event> result_;
  // A window for each chunk of a group, and one for all other batches.
  Buffer numbers_, ids_, outputs_;
  Buffer activations_, y_, next_logits_;
  std::vector<std::unique_ptr<Output>> results_;  // addresses stay
  const int64_t layers_;
  ResidentExperts experts_;
};

}  // namespace sluice
