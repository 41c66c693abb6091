// Writes traces.
#include "experts/trace_writer.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/error.h"
#include "experts/trace_format.h"

namespace sluice {
namespace {

using namespace trace_format;

[[noreturn]] void fail(const std::filesystem::path& path, const char* what) {
  const int code = errno;
  throw Error(code == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
              path.string() + ": cannot " + what + ": " + std::strerror(code));
}

void check_fits(const TraceModel& model) {
  const auto layers = static_cast<int64_t>(model.layers.size());
  if (layers >= 1 && layers <= kMaxLayers && model.experts >= 1 && model.experts <= kMaxTraceExperts &&
      model.top_k >= 1 && model.top_k <= std::min(model.experts, kMaxTopK) &&
      model.family.size() <= kMaxFamilyBytes) {
    return;
  }
  throw Error(ErrorCode::kUnsupported, "a trace holds 1 to " + std::to_string(kMaxLayers) +
                                           " layers of up to " + std::to_string(kMaxTraceExperts) +
                                           " experts; " + model.family + " has " + std::to_string(layers) +
                                           " layers of " + std::to_string(model.experts) + " experts, top " +
                                           std::to_string(model.top_k));
}

}  // namespace

TraceWriter::TraceWriter(const std::filesystem::path& path, TraceModel model)
    : path_(path), model_(std::move(model)) {
  check_fits(model_);
  file_.reset(std::fopen(path.c_str(), "wbe"));
  if (file_ == nullptr) fail(path_, "create");
  const auto magic = std::as_bytes(std::span(kMagic));
  record_.assign(magic.begin(), magic.end());
  append(record_, kVersion);
  append(record_, static_cast<uint32_t>(16 + model_.family.size() + 12 * model_.layers.size()));
  append(record_, static_cast<uint32_t>(model_.layers.size()));
  append(record_, static_cast<uint32_t>(model_.experts));
  append(record_, static_cast<uint32_t>(model_.top_k));
  append(record_, static_cast<uint32_t>(model_.family.size()));
  const auto family = std::as_bytes(std::span(model_.family));
  record_.insert(record_.end(), family.begin(), family.end());
  for (const TraceModel::Layer& layer : model_.layers) {
    append(record_, static_cast<uint32_t>(layer.number));
    append(record_, layer.row_bytes);
  }
  write_record();
}

void TraceWriter::write_record() {
  append(record_, checksum(record_));
  const size_t written = std::fwrite(record_.data(), 1, record_.size(), file_.get());
  if (written != record_.size() || std::fflush(file_.get()) != 0) fail(path_, "write");
  bytes_ += record_.size();
}

void TraceWriter::write_step(StepKind kind, int64_t rows, std::span<const uint16_t> ids) {
  SLUICE_CHECK(file_ != nullptr && rows >= 1 && rows <= kMaxRows);
  SLUICE_CHECK(ids.size() == model_.layers.size() * static_cast<size_t>(rows * model_.top_k));
  record_.clear();
  append(record_, kStepMark);
  append(record_, static_cast<uint32_t>(kind));
  append(record_, static_cast<uint32_t>(rows));
  const auto bytes = std::as_bytes(ids);
  record_.insert(record_.end(), bytes.begin(), bytes.end());
  write_record();
  ++steps_;
}

void TraceWriter::close() {
  SLUICE_CHECK(file_ != nullptr);
  record_.clear();
  append(record_, kEndMark);
  append(record_, static_cast<uint64_t>(steps_));
  write_record();
  if (std::fclose(file_.release()) != 0) fail(path_, "close");
}

void TraceRecorder::operator()(int64_t layer, std::span<const int32_t> ids, int64_t rows) {
  const TraceModel& model = writer_.model();
  if (layer == model.layers.front().number) {
    next_layer_ = 0;
    step_rows_ = rows;
    step_kind_ = kind_;
    ids_.clear();
  }
  SLUICE_CHECK_MSG(next_layer_ < model.layers.size() && layer == model.layers[next_layer_].number,
                   "layer " + std::to_string(layer) + " is not the next of the step");
  SLUICE_CHECK(rows == step_rows_ && ids.size() == static_cast<size_t>(rows * model.top_k));
  for (const int32_t id : ids) {
    SLUICE_CHECK(id >= -1 && id < model.experts);
    ids_.push_back(id < 0 ? Trace::kNoExpert : static_cast<uint16_t>(id));
  }
  if (++next_layer_ < model.layers.size()) return;
  writer_.write_step(step_kind_, rows, ids_);
  decode_steps_ += step_kind_ == StepKind::kDecode;
  rows_ += rows;
}

}  // namespace sluice
