// Reads and writes lists of resident experts.
#include "apps/warm_start.h"

#include "base/error.h"
#include "checkpoint/fingerprint.h"
#include "experts/residency_file.h"

namespace sluice::apps {
namespace {

ResidencyModel residency_model(const Checkpoint& checkpoint, const ModelInfo& info) {
  return {info.family, static_cast<int32_t>(info.moe_layers.size()), static_cast<int32_t>(info.experts),
          static_cast<int32_t>(info.top_k), fingerprint(checkpoint)};
}

}  // namespace

TraceModel trace_model(const Model& model) {
  const ModelInfo& info = model.info();
  if (info.moe_layers.empty()) {
    throw Error(ErrorCode::kUnsupported, "the model has no layer with experts: there is nothing to record");
  }
  TraceModel traced{info.family, info.experts, info.top_k, {}};
  const std::span<const LayerRows> rows = model.expert_rows();
  for (size_t l = 0; l < info.moe_layers.size(); ++l) {
    traced.layers.push_back({info.moe_layers[l], rows[l].layout.row_bytes});
  }
  return traced;
}

std::vector<int64_t> expert_order(const ExpertOptions& options, const Checkpoint& checkpoint,
                                  const ModelInfo& info) {
  const auto layers = static_cast<int64_t>(info.moe_layers.size());
  std::vector<Resident> residents;
  if (!options.warm_trace.empty()) {
    const Trace trace = read_trace(options.warm_trace);
    // Whether it is of this model is checked once its rows are known.
    if (static_cast<int64_t>(trace.model.layers.size()) == layers && trace.model.experts == info.experts) {
      residents = popularity(trace);
    }
  }
  if (!options.residency_file.empty() && std::filesystem::exists(options.residency_file)) {
    const std::vector<Resident> saved =
        read_residency(options.residency_file, residency_model(checkpoint, info));
    residents.insert(residents.end(), saved.begin(), saved.end());
  }
  if (residents.empty()) return {};
  // The slots take the most valuable ones, which are the last.
  const auto slots = static_cast<size_t>(options.resolve(info).slots);
  const size_t left_out = slots > 0 && residents.size() > slots ? residents.size() - slots : 0;
  return hottest_layers(std::span(residents).subspan(left_out), layers);
}

void warm_start(const ExpertOptions& options, const Checkpoint& checkpoint, Runtime& runtime) {
  std::vector<Resident> residents;
  if (!options.warm_trace.empty()) {
    const TraceModel model = trace_model(runtime.model());
    residents = popularity(read_trace(options.warm_trace, {.expected = &model}));
  }
  if (!options.residency_file.empty() && std::filesystem::exists(options.residency_file)) {
    const std::vector<Resident> saved =
        read_residency(options.residency_file, residency_model(checkpoint, runtime.model().info()));
    residents.insert(residents.end(), saved.begin(), saved.end());
  }
  if (!residents.empty()) runtime.resident()->fill_from(residents);
}

void save_residency(const ExpertOptions& options, const Checkpoint& checkpoint, Runtime& runtime) {
  if (options.residency_file.empty()) return;
  write_residency(options.residency_file, residency_model(checkpoint, runtime.model().info()),
                  runtime.resident()->residency());
}

}  // namespace sluice::apps
