// Reads traces, and believes nothing in them before it is checked.
#include "experts/trace.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "experts/trace_format.h"

namespace sluice {
namespace {

using namespace trace_format;

class TraceReader {
 public:
  TraceReader(const MappedFile& file, const TraceReadOptions& options)
      : path_(file.path().string()), bytes_(file.bytes()), options_(options) {}

  Trace read() {
    read_header();
    seen_.assign(static_cast<size_t>(trace_.model.experts), 0);
    while (trace_.complete && !read_end()) {
      if (!read_step()) stop_at_cut();
    }
    return std::move(trace_);
  }

 private:
  [[noreturn]] void bad(const std::string& what, ErrorCode code = ErrorCode::kBadFile) const {
    throw Error(code, path_ + ": " + what);
  }
  std::string here() const { return "step " + std::to_string(trace_.steps.size()) + ": "; }
  bool has(size_t bytes) const { return bytes_.size() - at_ >= bytes; }
  uint32_t u32(size_t offset) const { return load<uint32_t>(bytes_, at_ + offset); }
  uint64_t u64(size_t offset) const { return load<uint64_t>(bytes_, at_ + offset); }
  /// The record at at_ has `bytes` before its checksum, all inside the file.
  bool intact(size_t bytes) const { return checksum(bytes_.subspan(at_, bytes)) == u64(bytes); }

  void read_header() {
    const auto magic = std::as_bytes(std::span(kMagic));
    if (!has(magic.size()) || !std::equal(magic.begin(), magic.end(), bytes_.begin())) {
      bad("is not a trace of routed experts");
    }
    const size_t start = magic.size() + 8;
    if (!has(start + 16 + kChecksumBytes)) bad("cut short in the header");
    if (u32(8) != kVersion) {
      bad("version " + std::to_string(u32(8)) + " of the trace format; this program reads version " +
              std::to_string(kVersion),
          ErrorCode::kUnsupported);
    }
    const size_t size = u32(12);
    if (!has(start + size + kChecksumBytes)) bad("cut short in the header");
    if (!intact(start + size)) bad("the header is damaged: its checksum does not match");
    read_model(start, size);
    at_ = start + size + kChecksumBytes;
    if (options_.expected != nullptr && trace_.model != *options_.expected) {
      bad("was recorded with another model: " + describe(trace_.model) + ", not " +
          describe(*options_.expected));
    }
  }

  void read_model(size_t start, size_t size) {
    TraceModel& model = trace_.model;
    const int64_t layers = u32(start), family_bytes = u32(start + 12);
    model.experts = u32(start + 4);
    model.top_k = u32(start + 8);
    if (layers < 1 || layers > kMaxLayers || model.experts < 1 || model.experts > kMaxTraceExperts ||
        model.top_k < 1 || model.top_k > std::min(model.experts, kMaxTopK) ||
        family_bytes > static_cast<int64_t>(kMaxFamilyBytes) ||
        static_cast<int64_t>(size) != 16 + family_bytes + 12 * layers) {
      bad("the header makes no sense: " + std::to_string(layers) + " layers of " +
          std::to_string(model.experts) + " experts, top " + std::to_string(model.top_k));
    }
    size_t at = start + 16;
    model.family.assign(reinterpret_cast<const char*>(bytes_.data()) + at, static_cast<size_t>(family_bytes));
    at += static_cast<size_t>(family_bytes);
    for (int64_t l = 0; l < layers; ++l, at += 12) {
      const TraceModel::Layer layer{u32(at), u64(at + 4)};
      if (!model.layers.empty() && layer.number <= model.layers.back().number) {
        bad("the header lists layer " + std::to_string(layer.number) + " after layer " +
            std::to_string(model.layers.back().number));
      }
      model.layers.push_back(layer);
    }
  }

  static std::string describe(const TraceModel& model) {
    return model.family + " with " + std::to_string(model.layers.size()) + " MoE layers of " +
           std::to_string(model.experts) + " experts, top " + std::to_string(model.top_k) + ", " +
           std::to_string(model.layers.front().row_bytes) + " bytes an expert";
  }

  /// True at a correct end record; false at anything else.
  bool read_end() {
    if (!has(4) || u32(0) != kEndMark || !has(12 + kChecksumBytes)) return false;
    if (!intact(12)) bad("the end record is damaged: its checksum does not match");
    if (u64(4) != trace_.steps.size()) {
      bad("holds " + std::to_string(trace_.steps.size()) + " steps, but its end record says " +
          std::to_string(u64(4)));
    }
    if (bytes_.size() - at_ != 12 + kChecksumBytes) bad("goes on after its end record");
    return true;
  }

  /// False if the file ends inside the step.
  bool read_step() {
    if (has(4) && u32(0) != kStepMark && u32(0) != kEndMark) bad(here() + "no step begins here");
    if (!has(kStepHeaderBytes) || u32(0) == kEndMark) return false;
    TraceStep step{static_cast<StepKind>(u32(4)), u32(8), trace_.ids.size()};
    if (u32(4) > 1) bad(here() + "unknown kind " + std::to_string(u32(4)));
    if (step.rows < 1 || step.rows > kMaxRows) bad(here() + std::to_string(step.rows) + " rows");
    const TraceModel& model = trace_.model;
    const size_t count = model.layers.size() * static_cast<size_t>(step.rows * model.top_k);
    const size_t size = kStepHeaderBytes + 2 * count;
    if (!has(size + kChecksumBytes)) return false;
    if (!intact(size)) bad(here() + "damaged: its checksum does not match");
    trace_.ids.resize(step.first_id + count);
    std::memcpy(trace_.ids.data() + step.first_id, bytes_.data() + at_ + kStepHeaderBytes, 2 * count);
    for (size_t l = 0; l < model.layers.size(); ++l) check_ids(trace_.ids_of(step, l), l);
    trace_.steps.push_back(step);
    at_ += size + kChecksumBytes;
    return true;
  }

  void check_ids(std::span<const uint16_t> ids, size_t layer) {
    const std::string place = "layer " + std::to_string(trace_.model.layers[layer].number) + ": expert ";
    for (size_t i = 0; i < ids.size(); ++i) {
      if (i % static_cast<size_t>(trace_.model.top_k) == 0) ++row_;
      if (ids[i] == Trace::kNoExpert) continue;
      if (ids[i] >= trace_.model.experts) {
        bad(here() + place + std::to_string(ids[i]) + " of " + std::to_string(trace_.model.experts));
      }
      if (seen_[ids[i]] == row_) bad(here() + place + std::to_string(ids[i]) + " twice in one row");
      seen_[ids[i]] = row_;
    }
  }

  void stop_at_cut() {
    trace_.complete = false;
    if (options_.accept_cut) return;
    bad("cut short after " + std::to_string(trace_.steps.size()) +
        " complete steps: the recording did not come to its end");
  }

  const std::string path_;
  const std::span<const std::byte> bytes_;
  const TraceReadOptions& options_;
  size_t at_ = 0;
  Trace trace_;
  std::vector<uint64_t> seen_;  // [experts]: the last row that named it
  uint64_t row_ = 0;
};

}  // namespace

Trace read_trace(const std::filesystem::path& path, const TraceReadOptions& options) {
  const MappedFile file = MappedFile::open(path);
  return TraceReader(file, options).read();
}

}  // namespace sluice
