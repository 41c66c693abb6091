// Which experts each token used: a recorded run, read from a file that trace_writer.h has written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace sluice {

/// The model that a trace was recorded with.
struct TraceModel {
  struct Layer {
    int64_t number = 0;      // the model's number, counted with dense layers
    uint64_t row_bytes = 0;  // of one expert
    bool operator==(const Layer&) const = default;
  };
  std::string family;              // "qwen3_moe"
  int64_t experts = 0, top_k = 0;  // in each layer
  std::vector<Layer> layers;       // the MoE layers, by ascending number
  bool operator==(const TraceModel&) const = default;
  int64_t all_experts() const { return static_cast<int64_t>(layers.size()) * experts; }
};

enum class StepKind : uint8_t { kPrefill = 0, kDecode = 1 };

/// One forward through all layers.
struct TraceStep {
  StepKind kind = StepKind::kDecode;
  int64_t rows = 0;
  size_t first_id = 0;  // of [layers, rows, top_k]
};

struct Trace {
  static constexpr uint16_t kNoExpert = 0xffff;  // in rows that only pad a batch

  TraceModel model;
  std::vector<TraceStep> steps;
  std::vector<uint16_t> ids;
  bool complete = true;  // the recorder came to its end

  /// Ids [rows, top_k] of one step in the layer with index `layer` among the MoE layers.
  std::span<const uint16_t> ids_of(const TraceStep& step, size_t layer) const {
    const auto count = static_cast<size_t>(step.rows * model.top_k);
    return {ids.data() + step.first_id + layer * count, count};
  }
};

struct TraceReadOptions {
  bool accept_cut = false;               // take the complete steps of a recording that was cut short
  const TraceModel* expected = nullptr;  // refuse a trace of another model
};

/// Reads and checks a whole trace. Throws Error: kNotFound, kIo; kUnsupported for another version of the
/// format; kBadFile (one line that names the file and the step) if it is no trace, cut short, damaged, of
/// another model, or names experts that the model does not have.
Trace read_trace(const std::filesystem::path& path, const TraceReadOptions& options = {});

}  // namespace sluice
