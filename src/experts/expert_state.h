// What every way of making experts computable shares: pools of slots, plans, streams and events.
//
// Who does what, on which stream:
// - compute: routers, all writers of the slot maps, products. It waits for copies, never the host.
// - demand: the gather of a layer's misses.
// - predict: the gather of predicted experts of the next layer, behind the demand of this one.
// - copy: the batched copies of a streaming pass.
// - staging: host threads fill the ring of rows whose pages are not locked; only where there are such layers.
// Bytes of a slot are written by copies on demand, predict and copy alone, and by adoption on compute.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/host_array.h"
#include "experts/cpu_experts.h"
#include "experts/executor.h"
#include "experts/fetch_rule.h"
#include "experts/host_rows.h"
#include "experts/link_meter.h"
#include "experts/settings.h"
#include "experts/slot_log.h"
#include "experts/slot_map.h"
#include "experts/staged_rows.h"

namespace sluice {

/// A copy plan with its memory.
struct OwnedPlan {
  Buffer memory;
  CopyPlan plan;
  OwnedPlan(Device& device, int32_t capacity);
};

/// How many slots a pool has, and how many of them a pass borrows.
struct PoolSize {
  int64_t slots = 0, ring = 0;
};

/// The slots of one row layout and the layers that share them. The map and the addresses of slots are made
/// for all experts of these layers; memory lies behind the first `slots` of them.
class ExpertPool {
 public:
  ExpertPool(Device& device, Stream& compute, const RowLayout& layout, std::vector<int32_t> layers,
             int64_t experts, PoolSize size, SlotPolicy policy);

  const RowLayout layout;
  const std::vector<int32_t> layers;  // MoE layers by local number
  int64_t slots;
  int64_t ring;  // R of this pool
  SlotMap map;
  std::unique_ptr<ReservedMemory> bytes;     // [slots, layout.row_bytes]
  std::unique_ptr<SlotLog> log;              // null without audits
  std::vector<const std::byte*> host_bases;  // where the host rows of each layer begin
  Buffer bases;                              // the same on the device

  int64_t most_slots() const { return map.shape().max_slots; }
  size_t bytes_of(int64_t count) const { return static_cast<size_t>(count) * layout.row_bytes; }

  std::byte* slot(int64_t index) const { return static_cast<std::byte*>(bytes->data()) + bytes_of(index); }
};

/// One MoE layer: its host rows, its pool, and what its copies need.
struct LayerState {
  const LayerRows* rows = nullptr;
  ExpertPool* pool = nullptr;
  int32_t local = 0;               // number inside the pool
  const float* scalars = nullptr;  // [experts, kScalarsPerExpert], on the device
  std::unique_ptr<OwnedPlan> demand, predicted, adopted;
  std::unique_ptr<Event> planned;   // compute: the plans of this layer's call are written
  std::unique_ptr<Event> fetched;   // demand: the misses are in their slots
  std::unique_ptr<Event> forecast;  // predict: what was predicted for this layer is in its slots

  const int32_t* slot_of() const {
    return pool->map.view().slot_of + static_cast<int64_t>(local) * pool->map.shape().experts;
  }
  /// The rows of this layer as kernels see them, with expert e in pool row row_of[e].
  ExpertRows view(const int32_t* row_of) const {
    return {rows->layout, pool->slot(0), row_of, scalars, rows->experts, rows->compute};
  }
};

struct ExpertState {
  ExpertState(Device& device, Stream& compute, std::span<const LayerRows> rows, const ExpertShape& shape,
              const ExpertSettings& settings, int64_t max_rows);

  Device& device;
  Stream& compute;
  const ExpertShape shape;
  const ExpertSettings settings;
  const int64_t max_rows;
  std::unique_ptr<Stream> demand, predict, copy;
  std::vector<std::unique_ptr<ExpertPool>> pools;
  std::vector<LayerState> layers;
  std::unique_ptr<StagedRows> staged;  // null where all pages may be read by the link
  Buffer scalars;                      // of all layers
  Buffer slot_ids;                     // [max_rows * k]: the ids that an ensure rewrites
  bool pass_open = false;
  std::unique_ptr<CpuExperts> cpu;        // null: never
  std::unique_ptr<LinkMeter> link_meter;  // CpuMode::kAuto alone
  Buffer cpu_ids;                         // [max_rows * k]: the ids of a layer that the CPU computes
  std::optional<FetchRule> cpu_rule;  // of the running forward; empty: all that is missing crosses the link

  /// Notes who gets the slots of `plan` on `compute`, where audits run.
  void note(SlotWrite cause, const LayerState& layer, const CopyPlan& plan);
  /// Sets the slots of all pools together to `slots`, between forwards; every pool keeps what lies in
  /// the slots that stay, at its address. One host wait. Throws Error with everything as it was:
  /// kInvalidArgument for numbers that do not fit the model or the ring, kOutOfMemory.
  void resize(int64_t slots);
  int64_t slots() const;

  /// Copies a layer's rows by a plan that the device has made, of at most `most` entries, into slots; through
  /// the ring where its pages are not locked. `planned` was recorded behind the plan; `stream` has waited for
  /// it.
  void gather(Stream& stream, const char* name, const LayerState& layer, const OwnedPlan& plan,
              const Event& planned, int64_t most) const;
  /// As Stream::copy_batch, for entries that come from the layer's rows.
  void copy_rows(Stream& stream, const char* name, const LayerState& layer,
                 std::span<const CopyEntry> entries) const;

  int32_t* cpu_ids_scratch() const { return cpu_ids.as<int32_t>(); }
  int32_t* ids_scratch() const { return slot_ids.as<int32_t>(); }
  /// Queues a copy of every slot map's status word, and of its number of residents, to the host.
  void queue_status();
  /// What queue_status() counted, after the host has waited for it: experts in slots, those of them outside
  /// the regions, and those that a streaming pass may count on.
  struct Residents {
    int64_t all = 0, outside_region = 0, listed = 0;
  };
  Residents residents() const;
  /// The host has filled slots of pool `p` and knows what it holds now.
  void set_residents(size_t p, int64_t all, int64_t outside_region) {
    host_counts_[2 * p] = all;
    host_counts_[2 * p + 1] = outside_region;
  }
  /// After the host has waited for the compute stream: throws the first failure that queue_status() brought.
  /// The failure is then forgotten: it was one request's.
  void throw_if_failed();

 private:
  std::vector<float> host_scalars_;  // of all layers
  std::vector<PoolSize> divide(int64_t slots) const;

  HostArray<SlotStatus> statuses_;
  Buffer counts_;                   // [pools, 2] in device memory
  HostArray<int64_t> host_counts_;  // the same
};

}  // namespace sluice
