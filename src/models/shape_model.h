// A model given by numbers, without weights: for forecasts on the timed device.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "device/stream.h"
#include "models/model.h"

namespace sluice {

/// Sizes of a model whose experts are what matters; the rest of a layer is one number of parameters.
struct ModelShape {
  std::string name, what;  // "q36", one line for people
  int64_t layers = 0, hidden = 0, vocab_size = 0;
  int64_t experts = 0, top_k = 0, intermediate = 0;  // in each layer, in NVFP4
  int64_t shared_intermediate = 0;                   // of the shared expert, in NVFP4; 0: none
  int64_t mixer_parameters = 0;                   // projections of attention or its replacement, a byte each
  int64_t attention_every = 1;                    // each n-th layer attends to all positions
  int64_t heads = 0, kv_heads = 0, head_dim = 0;  // of those
};

/// Shapes of published models. Throws Error kNotFound that lists the names.
const ModelShape& model_shape(std::string_view name);
std::span<const ModelShape> model_shapes();

/// A model of this shape. Its operations declare the bytes and arithmetic of the real ones and compute
/// nothing, but its routes are real: drawn evenly and anew for every token (text repeats itself more, so
/// decode finds fewer experts resident than it would). Of `options`, max_rows and compute count. Memory is
/// mapped and never touched if `runs_for_shape` decides what runs. Throws Error kOutOfMemory.
std::unique_ptr<Model> make_shape_model(Device& device, const ModelShape& shape, const LoadOptions& options);
/// TimedOptions::runs for such a model: everything but what computes with weights or moves them.
bool runs_for_shape(const QueuedOp& op);

}  // namespace sluice
