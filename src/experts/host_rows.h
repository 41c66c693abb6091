// All routed experts in host memory: for each layer one packed row an expert.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/numa.h"
#include "base/thread_pool.h"
#include "base/units.h"
#include "checkpoint/weights.h"
#include "device/device.h"
#include "kernels/matrix.h"

namespace sluice {

/// The rows of one MoE layer: [experts, layout.row_bytes], and the scalars that stay beside them.
struct LayerRows {
  RowLayout layout;
  int64_t experts = 0;
  Buffer rows;
  std::vector<float> scalars;       // [experts, kScalarsPerExpert]
  Compute compute = Compute::kF32;  // how their products are to be made
  bool staged = false;              // the link must not read these pages: their lock was refused

  const std::byte* row(ExpertId expert) const {
    return rows.as<std::byte>() + static_cast<size_t>(expert.value) * layout.row_bytes;
  }
  size_t bytes() const { return rows.bytes(); }
};

/// Whether host rows are page-locked. kAuto: where the device reads them over a link. kOn: always. Layers
/// whose lock is refused are staged; with kRequired that is an error. kOff: never, so a device that needs
/// locked pages stages all of them.
enum class LockMode { kOff, kAuto, kOn, kRequired };

struct HostRowOptions {
  LockMode lock = LockMode::kAuto;
  NumaPolicy numa;
  uint64_t memory_limit = 0;  // bytes that count as free; 0: what the system says
};

/// What became of the host rows.
struct HostRowReport {
  uint64_t bytes = 0, locked_bytes = 0;
  std::vector<int64_t> staged_layers;  // MoE layers, counted from 0
  std::string refusal;                 // of the first of them
  std::string numa_refusal;            // why pages lie where they were first touched; empty: as asked
  PageShare share;
};

/// Throws Error kOutOfMemory if expert rows of `bytes` do not fit: names the line of the plan, the limit, and
/// what to do.
void check_host_memory(uint64_t bytes, const HostRowOptions& options);

/// Fills host rows layer by layer, and locks each full layer on a thread of its own while the next one is
/// read: locking first would fault in and zero every page, and one caller at a time is all that drivers
/// allow.
class HostRowReader {
 public:
  /// `progress` is called with the bytes of each finished row, from any thread.
  HostRowReader(Device& device, ThreadPool& pool, const HostRowOptions& options,
                std::function<void(size_t)> progress);
  ~HostRowReader();

  /// Packs every expert of MoE layer `number` into host memory, in parallel. Layers come in any order; those
  /// that come first get the near memory. Throws Error kOutOfMemory.
  LayerRows read(int64_t number, const StoredExperts& stored);
  /// Waits for the last lock and marks staged layers among `layers`, all that read() gave, by their number.
  /// Throws Error kOutOfMemory where a lock was required and refused.
  HostRowReport finish(std::span<LayerRows> layers);

 private:
  class Locker;

  Device& device_;
  ThreadPool& pool_;
  const HostRowOptions options_;
  const std::function<void(size_t)> progress_;
  const int near_node_;
  HostRowReport report_;
  std::unique_ptr<Locker> locker_;  // null where nothing is locked
};

}  // namespace sluice
