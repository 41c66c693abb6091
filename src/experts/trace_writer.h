// Records which experts a running model uses, step by step, into a file that read_trace reads.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "experts/trace.h"

namespace sluice {

/// Writes whole steps; each has left the process when its call returns, so that a crash loses no complete
/// step. Memory is bounded by the largest step.
class TraceWriter {
 public:
  /// Creates or replaces `path` and writes the header. Throws Error kIo or kNotFound (no such folder);
  /// kUnsupported if the model is beyond what the format holds.
  TraceWriter(const std::filesystem::path& path, TraceModel model);

  const TraceModel& model() const { return model_; }
  /// ids [layers, rows, top_k], Trace::kNoExpert in padding rows. Throws Error kIo.
  void write_step(StepKind kind, int64_t rows, std::span<const uint16_t> ids);
  /// Marks the trace as complete and closes the file. Without it, readers take the trace as cut short.
  /// Throws Error kIo.
  void close();

  int64_t steps() const { return steps_; }
  uint64_t bytes() const { return bytes_; }

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void write_record();

  std::filesystem::path path_;
  TraceModel model_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::vector<std::byte> record_;
  int64_t steps_ = 0;
  uint64_t bytes_ = 0;
};

/// Puts the layers of a step together, as a model's route observer reports them. A step begins with the
/// first MoE layer and is written with the last; one that stops in between (its forward failed) is dropped
/// when the next begins.
class TraceRecorder {
 public:
  explicit TraceRecorder(TraceWriter& writer) : writer_(writer) {}
  /// Kind of the steps that begin from now on.
  void set_kind(StepKind kind) { kind_ = kind; }
  /// `layer` is the model's number; ids [rows, top_k], -1 in padding rows. Throws Error kIo.
  void operator()(int64_t layer, std::span<const int32_t> ids, int64_t rows);

  int64_t decode_steps() const { return decode_steps_; }
  int64_t rows() const { return rows_; }  // of all written steps

 private:
  TraceWriter& writer_;
  StepKind kind_ = StepKind::kPrefill, step_kind_ = StepKind::kPrefill;
  size_t next_layer_ = 0;
  int64_t step_rows_ = 0;
  std::vector<uint16_t> ids_;  // of the running step
  int64_t decode_steps_ = 0, rows_ = 0;
};

}  // namespace sluice
