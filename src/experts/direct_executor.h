// Experts computed straight from host memory: the CPU backend when nothing asks for slots.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "experts/executor.h"
#include "experts/host_rows.h"

namespace sluice {

/// Reads every expert where it lies. `rows` outlive the executor.
class DirectExecutor final : public MoeExecutor {
 public:
  explicit DirectExecutor(std::span<const LayerRows> rows);
  void run(Stream& compute, const MoeInput& input, float* y) override;

 private:
  std::span<const LayerRows> rows_;
  std::vector<int32_t> identity_;  // expert e lies in row e
};

/// Shows the routes of every layer to an observer, then lets another executor compute. Costs a host wait a
/// layer.
class ObservedExecutor final : public MoeExecutor {
 public:
  /// `layer_numbers` are the model's numbers of the MoE layers.
  ObservedExecutor(MoeExecutor& inner, Device& device, std::span<const int64_t> layer_numbers)
      : inner_(inner), device_(device), layer_numbers_(layer_numbers) {}
  void observe(RouteObserver observer) { observer_ = std::move(observer); }
  bool is_observed() const { return static_cast<bool>(observer_); }
  bool wants_lookahead() const override { return inner_.wants_lookahead(); }
  Stream& fork_lookahead(Stream& compute) override { return inner_.fork_lookahead(compute); }
  void run(Stream& compute, const MoeInput& input, float* y) override;
  void run_blocks(Stream& compute, std::span<const MoeBlock> blocks) override;

 private:
  MoeExecutor& inner_;
  Device& device_;
  std::span<const int64_t> layer_numbers_;
  RouteObserver observer_;
  std::vector<int32_t> ids_;
};

}  // namespace sluice
