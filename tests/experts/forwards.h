// Forwards of the tiny MoE model of moe_harness.h on any device, each waited for and compared.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "experts/moe_harness.h"

namespace sluice {

class Forwards {
 public:
  Forwards(Device& device, const ExpertSettings& settings)
      : device_(device),
        compute_(device.make_stream()),
        numbers_(device.allocate_array<float>(kMostRows * (kHidden + kTopK + kExperts), "inputs")),
        ids_(device.allocate_array<int32_t>(kMostRows * kTopK, "routes")),
        activations_(device.allocate_array<float>(kMostRows * kTopK * kInner, "activations")),
        outputs_(device.allocate_array<float>(kMostRows * kTopK * kHidden, "outputs")),
        y_(device.allocate_array<float>(kMostRows * kHidden, "y")),
        experts_(device, *compute_, shared_rows(), {kLayers, kExperts, kTopK, 1}, settings, kMostRows) {}

  /// `between` is called before each layer but the first.
  void run(const Batch& batch, bool decode, const std::function<void(int64_t layer)>& between = {}) {
    decode ? experts_.begin_decode(batch.rows) : experts_.begin_prefill(batch.rows);
    std::vector<std::vector<float>> results;
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      if (layer > 0 && between) between(layer);
      experts_.run(*compute_, upload(batch, layer), y_.as<float>());
      std::vector<float>& y = results.emplace_back(static_cast<size_t>(batch.rows * kHidden));
      compute_->copy("output", y.data(), y_.data(), y.size() * sizeof(float));
    }
    decode ? experts_.end_decode() : experts_.end_prefill();
    experts_.queue_checks();
    device_.wait(*compute_, "result");
    experts_.check();
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      const std::vector<float>& want = expected_output(batch, layer);
      const std::vector<float>& got = results[static_cast<size_t>(layer)];
      EXPECT_EQ(std::memcmp(got.data(), want.data(), want.size() * sizeof(float)), 0)
          << "batch " << batch.number << ", MoE layer " << layer;
    }
  }
  void decode(const Batch& batch) { run(batch, true); }
  void prefill(const Batch& batch, const std::function<void(int64_t layer)>& between = {}) {
    run(batch, false, between);
  }
  ExpertReport report() { return experts_.report(); }
  uint64_t on_cpu() { return report().cpu.totals.experts; }

 private:
  MoeInput upload(const Batch& batch, int64_t layer) {
    const LayerInput& in = input_of(batch, layer);
    compute_->copy("inputs", numbers_.data(), in.numbers.data(), in.numbers.size() * sizeof(float));
    compute_->copy("routes", ids_.data(), in.ids.data(), in.ids.size() * sizeof(int32_t));
    const auto* numbers = numbers_.as<float>();
    MoeInput input;
    input.layer = layer;
    input.x = numbers;
    input.routes = {ids_.as<int32_t>(), numbers + batch.rows * kHidden, batch.rows, kTopK};
    if (experts_.wants_lookahead() && layer + 1 < kLayers) {
      input.next_logits = numbers + batch.rows * (kHidden + kTopK);
    }
    input.activations = activations_.as<float>();
    input.outputs = outputs_.as<float>();
    return input;
  }

  Device& device_;
  std::unique_ptr<Stream> compute_;
  Buffer numbers_, ids_, activations_, outputs_, y_;
  ResidentExperts experts_;
};

}  // namespace sluice
