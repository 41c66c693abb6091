// Streaming prefill: the experts of the next tile cross the link while this one computes.
#pragma once

#include <functional>

#include "experts/expert_state.h"
#include "experts/pass_cost.h"
#include "experts/stream_counters.h"

namespace sluice {

/// One pass of a chunk of tokens, or of a group of chunks (layer-major), through all layers. Layers are cut
/// into tiles of R / 2 experts; tiles alternate between the two halves of the region [0, R), which the pass
/// borrows from the pool.
///
/// Fences of tile n (buffer b = n % 2):
///   compute: begin (unmaps the region, floor = R, lists residents) -> [begin] -> copy: first copies
///   copy: copies of tile n -> [ready b] -> compute: products of tile n -> [released b] -> copy: copies of
///   tile n + 2
/// With the CPU, a part of each layer's misses does not cross. Which ones is fixed at begin, before anything
/// is routed. The blocks of a layer are handed to the workers one after the other, spread over the layer's
/// products:
///   compute: post block 0, products, take block 0, post block 1, products, ...; sums of a block behind its
///   take
/// In place of one host wait a pass, at begin: the host reads which experts are resident.
class StreamPass final : public MoeExecutor {
 public:
  explicit StreamPass(ExpertState& state);

  /// Opens the pass. `adopt_rows`: the experts of the last so many rows of each call stay resident
  /// afterwards. `cpu`: of each layer's misses the part that the CPU computes; none with HitMode::kOff.
  void begin(int64_t adopt_rows, const CpuPart& cpu = {});
  /// Layers come in order, each once.
  void run(Stream& compute, const MoeInput& input, float* y) override;
  /// Each tile crosses once and serves all blocks. They may share outputs unless splits_layers().
  void run_blocks(Stream& compute, std::span<const MoeBlock> blocks) override;
  /// Whether some layer's experts do not fit one tile.
  bool splits_layers() const;
  /// Closes the pass after the last layer, or joins the copies in flight where it is given up before.
  void end();

  /// Cuts the tiles anew after the pools have another size; no pass is open and the host has waited.
  void reshape();
  /// A copy failed, and the host has waited: what passes share is written anew.
  void forget() { table_written_ = false; }

  /// Bytes that this pass moved over the link, and rows of host memory that were resident when it began.
  uint64_t streamed_bytes() const { return streamed_bytes_; }
  /// The first copies of the last pass, which nothing else delayed: how many bytes, and the events around
  /// them.
  uint64_t first_copy_bytes() const { return first_copy_bytes_; }
  const Event& first_copy_from() const { return *first_copy_from_; }
  const Event& first_copy_to() const { return *first_copy_to_; }
  int64_t resident_rows() const { return resident_rows_; }
  /// Experts that this pass leaves to the CPU.
  int64_t cpu_experts() const { return cpu_experts_; }
  uint64_t cpu_bytes() const { return cpu_bytes_; }
  /// Of every layer, in device memory.
  const StreamCounters* counters() const { return counters_.as<StreamCounters>(); }

 private:
  /// One half of a pool's region.
  struct Half {
    std::unique_ptr<Event> ready, released;
  };
  struct Ring {
    ExpertPool* pool = nullptr;
    int64_t tile_experts = 0;
    Half halves[2];
    int64_t issued = 0;  // tiles of this pool whose copies were queued
  };
  struct Tile {
    size_t layer = 0;
    int32_t first = 0, last = 0;  // experts
    Ring* ring = nullptr;
    int64_t number = 0;  // among the tiles of its pool
    Half& half() const { return ring->halves[number % 2]; }
    int64_t first_slot() const { return number % 2 * ring->tile_experts; }
  };

  void make_tiles();
  void begin_regions();
  void read_residents();
  void choose_for_cpu(const CpuPart& cpu);
  void write_table();
  void prefetch_until(size_t count);
  void prefetch(const Tile& tile);
  void count_again(const Tile& tile);
  void gather_hits(const Tile& tile);
  void adopt_last(const Tile& tile, std::span<const MoeBlock> blocks);
  void adopt(const Tile& tile, const MoeInput& input, int64_t rows);
  void post_block(Stream& compute, const MoeBlock& block);
  void take_block(Stream& compute, std::span<const MoeBlock> blocks, size_t number);
  bool resident(size_t layer, int32_t expert) const { return hit_slot_[index(layer, expert)] >= 0; }
  bool crosses(size_t layer, int32_t expert) const {
    return !resident(layer, expert) && !on_cpu_[layer].contains(expert);
  }
  size_t index(size_t layer, int32_t expert) const {
    return layer * static_cast<size_t>(state_.shape.experts) + static_cast<size_t>(expert);
  }
  Stream& copy_stream() { return state_.settings.compare.overlap ? *state_.copy : state_.compute; }

  ExpertState& state_;
  std::vector<Ring> rings_;
  std::vector<Tile> tiles_;
  std::vector<size_t> first_tile_;  // of each layer, and the end
  size_t prefetched_ = 0;           // tiles
  std::vector<int32_t> hit_slot_;   // [L, E]: the slot of a listed resident, or -1
  std::vector<ExpertSet> on_cpu_;   // [L]
  std::vector<bool> uses_cpu_;      // [L]
  int64_t cpu_experts_ = 0;
  uint64_t cpu_bytes_ = 0;
  Buffer snapshot_;            // pinned: slot_of and listed of every pool, as begin left them
  Buffer host_table_, table_;  // [L, E]: the pool row of each expert during this pass
  bool table_written_ = false;
  std::vector<Buffer> hit_plans_;  // for hits gathered on the device
  Buffer region_slots_;            // [2][E]: where adoption finds a tile's experts
  Buffer counters_;                // [L]
  std::unique_ptr<Event> begun_, first_copy_from_, first_copy_to_;
  uint64_t first_copy_bytes_ = 0;
  int64_t adopt_rows_ = 0;
  uint64_t streamed_bytes_ = 0;
  int64_t resident_rows_ = 0;
};

}  // namespace sluice
