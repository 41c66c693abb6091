// How experts are kept and moved. The defaults are the fast ones; the rest exists for comparison.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "experts/protocol_mutations.h"
#include "experts/slot_map.h"

namespace sluice {

enum class PrefillMode { kAuto, kStream, kTouched, kLayerMajor };
enum class HitMode { kInPlace, kDeviceToDevice, kOff };
enum class LookaheadMode { kOff, kMeasure, kOn };
/// kAuto: as measured on this machine (cpu_share.h); kAlways: all but `fetch_cap` of a layer's misses.
enum class CpuMode { kOff, kAuto, kAlways };

/// Experts on the CPU, beside the link.
struct CpuSettings {
  CpuMode mode = CpuMode::kOff;
  int32_t fetch_cap = 0;                       // kAlways: misses of a layer that still cross the link
  int threads = 0;                             // 0: one a physical core, less one for the engine
  std::chrono::milliseconds watchdog{10'000};  // longest wait for one layer's answer
  bool inline_work =
      false;  // no threads: the operation that waits computes. For devices that decide alone what runs
  std::function<void(int64_t layer)> before_work;  // tests alone: called by the workers
};

/// Switches that exist to compare with published engines; not in the common help.
struct ComparisonSwitches {
  bool overlap = true;             // off: copies run on the compute stream, nothing ahead
  bool high_copy_priority = true;  // off: the copy stream has default priority
  bool epoch_invalidation = true;  // off: the region is unmapped layer by layer on the copy stream
  HitMode hits = HitMode::kInPlace;
  bool side_lookahead = false;  // on: the next layer's router runs on a stream of its own
};

struct ExpertSettings {
  int64_t slots = 0;       // S; 0: experts are read from host memory, without slots
  int64_t ring_slots = 0;  // R, the region that a streaming pass borrows; 0: chosen from S and the model
  PrefillMode prefill = PrefillMode::kAuto;
  int64_t prefill_group = 0;  // most tokens that pass a layer together; 0: what kGroupBytes hold
  LookaheadMode lookahead = LookaheadMode::kOn;
  int64_t lookahead_budget = 0;  // predictions a layer and step; 0: the default of 4
  SlotPolicy policy = SlotPolicy::kLru;
  CpuSettings cpu;
  int64_t audit_every = 0;  // compare all slots with the host rows every N steps; 0: never
  ComparisonSwitches compare;
  ProtocolMutations mutations;  // tests alone
};

/// Device memory that a layer-major group may take where nothing else is said.
inline constexpr uint64_t kGroupBytes = uint64_t{256} << 20;

/// Sizes that a setting is checked against.
struct ExpertShape {
  int64_t layers = 0, experts = 0, top_k = 0;  // of the MoE layers
  int64_t decode_rows = 1;                     // requests that decode together
};

/// "16", "25%", "all" or "auto" to a number of slots (auto: 0, experts are read where they lie). Throws Error
/// kInvalidArgument: not a number, below min_slots(), above layers * experts, a percentage that rounds to too
/// few.
int64_t parse_slots(std::string_view text, const ExpertShape& shape);
/// Throws Error kInvalidArgument for numbers below min_slots() or above layers * experts.
void check_slots(const ExpertShape& shape, int64_t slots);
/// The fewest slots: each expert of one decode step's rows of a layer in a slot of its own, and at least the
/// two tiles of one expert that the smallest ring has.
int64_t min_slots(const ExpertShape& shape);
/// R: the region of a streaming pass. Two whole layers where half of the slots allow it, else two tiles of
/// the largest size that leaves the slots of a decode step. `wish` 0 means choose. Throws Error
/// kInvalidArgument that says what a ring needs where `wish` does not fit.
int64_t ring_slots(const ExpertShape& shape, int64_t slots, int64_t wish);

}  // namespace sluice
