// What a model's MoE layer asks for: the weighted sum of its routed experts.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "device/stream.h"
#include "kernels/experts.h"

namespace sluice {

/// The input of one MoE layer for one batch, in device memory.
struct MoeInput {
  int64_t layer = 0;         // which MoE layer, counted from 0 without the dense ones
  const float* x = nullptr;  // [rows, hidden]
  ExpertRoutes routes;       // [rows, k]
  /// The next MoE layer's router on this layer's input [rows, experts], or null after the last one (Eliseev
  /// and Mazur, "Fast Inference of Mixture-of-Experts Language Models with Offloading", 2023). Written on the
  /// stream that fork_lookahead() gave.
  const float* next_logits = nullptr;
  /// Work on x that needs no routed expert (a shared expert), or empty. run() calls it once: behind the
  /// copies that it queues, before the products that wait for them.
  std::function<void(Stream& compute)> beside;
  float* activations = nullptr;  // scratch [rows * k, intermediate]
  float* outputs = nullptr;      // scratch [rows * k, hidden]
};

inline void run_beside(Stream& compute, const MoeInput& input) {
  if (input.beside) input.beside(compute);
}

/// One batch of a layer: what goes in, and where the weighted sums go, y [rows, hidden]. y may lie where
/// input.x does; the batches of one call may share activations, and outputs where the executor says so.
struct MoeBlock {
  MoeInput input;
  float* y = nullptr;
};

/// Makes routed experts computable and computes them.
class MoeExecutor {
 public:
  virtual ~MoeExecutor() = default;
  /// Whether run() uses MoeInput::next_logits; where not, the model leaves that product out.
  virtual bool wants_lookahead() const { return false; }
  /// Called once the layer's input is queued on `compute`, if wants_lookahead(): the stream for the next
  /// layer's router. `compute` itself means one launch for both routers; another stream starts behind
  /// the input, and run() joins it.
  virtual Stream& fork_lookahead(Stream& compute) { return compute; }
  /// y [rows, hidden] = the weighted sum over each row's experts, in top-k order. Enqueues on `compute`.
  virtual void run(Stream& compute, const MoeInput& input, float* y) = 0;
  /// The same for several batches of one layer, in order of their tokens.
  virtual void run_blocks(Stream& compute, std::span<const MoeBlock> blocks) {
    for (const MoeBlock& block : blocks) run(compute, block.input, block.y);
  }
};

/// Sees the experts that were chosen: the model's layer number, ids [rows, k] in descending score.
using RouteObserver = std::function<void(int64_t layer, std::span<const int32_t> ids, int64_t rows)>;

}  // namespace sluice
