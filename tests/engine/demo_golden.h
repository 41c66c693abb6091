// The reference's likelihood and texts of the demo model.
#pragma once

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "engine/session.h"
#include "models/computing_in.h"

namespace sluice {

inline nlohmann::json demo_golden() {
  return nlohmann::json::parse(
      read_text_file(std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/golden/demo-golden.json"));
}

/// A loaded demo checkpoint.
struct Demo {
  Checkpoint checkpoint;
  std::unique_ptr<Device> device = make_host_device(2);
  std::unique_ptr<Model> model;
  std::unique_ptr<Runtime> runtime;

  Demo(const std::filesystem::path& folder, Compute compute)
      : checkpoint(Checkpoint::open(folder)),
        model(load_model(checkpoint, *device, computing_in(compute))),
        runtime(std::make_unique<Runtime>(*device, *model, ExpertSettings())) {}

  /// Of every token, [ids, vocabulary].
  std::vector<float> logits(const std::vector<int32_t>& ids) {
    Session session(*runtime, {});
    std::vector<float> all;
    session.run_all(ids, int64_t{1} << 40, [&](int64_t, std::span<const float> logits, int64_t) {
      all.insert(all.end(), logits.begin(), logits.end());
    });
    return all;
  }

  /// Mean negative log-likelihood of ids[1...] in double precision.
  double likelihood(const std::vector<int32_t>& ids) {
    Session session(*runtime, {});
    const auto vocab = static_cast<size_t>(model->info().vocab_size);
    double sum = 0;
    session.run_all(ids, int64_t{1} << 40, [&](int64_t first, std::span<const float> logits, int64_t rows) {
      for (int64_t r = 0; r < rows; ++r) {
        const auto next = static_cast<size_t>(first + r + 1);
        if (next >= ids.size()) continue;
        const auto row = logits.subspan(static_cast<size_t>(r) * vocab, vocab);
        double total = 0;
        for (const float logit : row) total += std::exp(static_cast<double>(logit));
        sum += std::log(total) - static_cast<double>(row[static_cast<size_t>(ids[next])]);
      }
    });
    return sum / static_cast<double>(ids.size() - 1);
  }
};

}  // namespace sluice
