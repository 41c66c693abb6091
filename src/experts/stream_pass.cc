// The tiles of a streaming pass and their fences.
#include "experts/stream_pass.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "experts/cuda/expert_ops.h"
#include "experts/gather.h"
#include "experts/pool_of.h"
#include "experts/slot_ops.h"

namespace sluice {
namespace {

/// In the snapshot a byte says for each slot whether it is listed; the next pool's numbers follow, aligned.
constexpr size_t listed_bytes(int64_t slots) {
  return (static_cast<size_t>(slots) + sizeof(int32_t) - 1) / sizeof(int32_t) * sizeof(int32_t);
}

}  // namespace

StreamPass::StreamPass(ExpertState& state)
    : state_(state),
      on_cpu_(state.layers.size(), ExpertSet(static_cast<int32_t>(state.shape.experts))),
      uses_cpu_(state.layers.size()),
      begun_(state.device.make_event("begin")),
      first_copy_from_(state.device.make_event("first copy from")),
      first_copy_to_(state.device.make_event("first copy to")) {
  const int64_t experts = state.shape.experts;
  const auto cells = static_cast<int64_t>(state.layers.size()) * experts;
  size_t snapshot_bytes = 0;
  for (size_t p = 0; p < state.pools.size(); ++p) {
    ExpertPool& pool = *state.pools[p];
    Ring ring;
    ring.pool = &pool;
    for (int b = 0; b < 2; ++b) {
      const std::string suffix = " " + std::to_string(p) + (b == 0 ? "a" : "b");
      ring.halves[b] = {state.device.make_event("ready" + suffix),
                        state.device.make_event("released" + suffix)};
    }
    rings_.push_back(std::move(ring));
    snapshot_bytes +=
        pool.layers.size() * static_cast<size_t>(experts) * sizeof(int32_t) + listed_bytes(pool.most_slots());
  }
  snapshot_ = state.device.allocate(snapshot_bytes, "pass snapshot", MemoryKind::kPinned);
  host_table_ =
      state.device.allocate(static_cast<size_t>(cells) * sizeof(int32_t), "pass table", MemoryKind::kPinned);
  table_ = state.device.allocate_array<int32_t>(cells, "pass table");
  region_slots_ = state.device.allocate_array<int32_t>(experts, "region slots");
  const auto layers = static_cast<int64_t>(state.layers.size());
  counters_ = state.device.allocate_array<StreamCounters>(layers, "stream counters");
  StreamCounters* counters = counters_.as<StreamCounters>();
  state.compute.launch_both(
      {.name = "reset counters", .writes = {range_of(counters, layers)}},
      [=](const HostContext&) { std::fill(counters, counters + layers, StreamCounters()); },
      SLUICE_CUDA_OP(cuda::zero, counters, static_cast<size_t>(layers) * sizeof(StreamCounters)));
  hit_slot_.resize(static_cast<size_t>(cells));
  make_tiles();
}

void StreamPass::reshape() {
  tiles_.clear();
  first_tile_.clear();
  table_written_ = false;
  make_tiles();
}

void StreamPass::make_tiles() {
  const auto experts = static_cast<int32_t>(state_.shape.experts);
  for (Ring& ring : rings_) ring.tile_experts = std::min<int64_t>(ring.pool->ring / 2, experts);
  std::vector<int64_t> numbers(rings_.size());
  for (size_t l = 0; l < state_.layers.size(); ++l) {
    first_tile_.push_back(tiles_.size());
    const size_t p = pool_of(state_, l);  // rings_ are in the order of the pools
    const auto step = static_cast<int32_t>(rings_[p].tile_experts);
    for (int32_t first = 0; first < experts; first += step) {
      tiles_.push_back({l, first, std::min(experts, first + step), &rings_[p], numbers[p]++});
    }
  }
  first_tile_.push_back(tiles_.size());
}

void StreamPass::begin(int64_t adopt_rows, const CpuPart& cpu) {
  SLUICE_CHECK_MSG(!state_.pass_open, "two passes at once");
  state_.pass_open = true;
  adopt_rows_ = adopt_rows;
  prefetched_ = 0;
  streamed_bytes_ = first_copy_bytes_ = 0;
  if (state_.settings.compare.epoch_invalidation) begin_regions();
  read_residents();
  choose_for_cpu(cpu);
  write_table();
  // A decode step that is still running may read slots of the region: copies into it come after it. And after
  // the pass's table: behind experts of a higher priority it would keep the first layer waiting for two
  // tiles.
  state_.compute.record(*begun_);
  copy_stream().wait(*begun_);
  if (!state_.settings.mutations.unlist_at_begin) return;
  for (const Ring& ring : rings_) mutated::unlist_all(state_.compute, ring.pool->map.view());
}

void StreamPass::begin_regions() {
  const ProtocolMutations& mutations = state_.settings.mutations;
  for (const Ring& ring : rings_) {
    const SlotMapView& map = ring.pool->map.view();
    const auto slots = static_cast<int32_t>(2 * ring.tile_experts);
    if (mutations.keep_region_mapped) {
      mutated::begin_region_still_mapped(state_.compute, map, slots);
    } else if (mutations.no_floor) {
      slot_ops::invalidate(state_.compute, map, 0, slots);
    } else {
      slot_ops::begin_region(state_.compute, map, slots, nullptr, 0);
      // Decode steps between the layers need victims even where residents fill the pool.
      if (ring.pool->log) ring.pool->log->note_range(state_.compute, SlotWrite::kRegion, 0, slots);
      slot_ops::leave_evictable(state_.compute, map, static_cast<int32_t>(min_slots(state_.shape)));
    }
  }
}

void StreamPass::read_residents() {
  std::fill(hit_slot_.begin(), hit_slot_.end(), -1);
  resident_rows_ = 0;
  if (state_.settings.compare.hits == HitMode::kOff) return;
  auto* bytes = snapshot_.as<std::byte>();
  const auto experts = static_cast<size_t>(state_.shape.experts);
  for (const Ring& ring : rings_) {
    const SlotMapView& map = ring.pool->map.view();
    const size_t cells = ring.pool->layers.size() * experts;
    state_.compute.copy("snapshot of slots", bytes, map.slot_of, cells * sizeof(int32_t));
    state_.compute.copy("snapshot of listed", bytes + cells * sizeof(int32_t), map.listed,
                        static_cast<size_t>(ring.pool->slots));
    bytes += cells * sizeof(int32_t) + listed_bytes(ring.pool->slots);
  }
  state_.device.wait(state_.compute, "residents of a pass");
  state_.device.host_reads({snapshot_.data(), snapshot_.bytes()}, "residents of a pass");
  const auto* read = snapshot_.as<std::byte>();
  const bool epoch = state_.settings.compare.epoch_invalidation;
  for (const Ring& ring : rings_) {
    const size_t cells = ring.pool->layers.size() * experts;
    const auto* slot_of = reinterpret_cast<const int32_t*>(read);
    const auto* listed = reinterpret_cast<const uint8_t*>(read + cells * sizeof(int32_t));
    for (size_t i = 0; i < ring.pool->layers.size(); ++i) {
      for (size_t e = 0; e < experts; ++e) {
        const int32_t slot = slot_of[i * experts + e];
        // Only what the epoch protects may be read in place; without an epoch no one else writes the map.
        if (slot < 2 * ring.tile_experts || (epoch && listed[slot] == 0)) continue;
        hit_slot_[index(static_cast<size_t>(ring.pool->layers[i]), static_cast<int32_t>(e))] = slot;
        ++resident_rows_;
      }
    }
    read += cells * sizeof(int32_t) + listed_bytes(ring.pool->slots);
  }
}

// The last ones by number: the others still lie in few runs, and tiles at the end of a layer may be empty.
void StreamPass::choose_for_cpu(const CpuPart& cpu) {
  const auto experts = static_cast<int32_t>(state_.shape.experts);
  const bool may = state_.settings.compare.hits != HitMode::kOff;
  cpu_experts_ = 0;
  cpu_bytes_ = 0;
  for (size_t l = 0; l < state_.layers.size(); ++l) {
    int32_t misses = 0;
    for (int32_t e = 0; e < experts; ++e) misses += resident(l, e) ? 0 : 1;
    int32_t left = may ? cpu.of(misses) : 0;
    uses_cpu_[l] = left > 0;
    cpu_experts_ += left;
    cpu_bytes_ += static_cast<uint64_t>(left) * state_.layers[l].pool->layout.row_bytes;
    on_cpu_[l] = ExpertSet(experts);
    for (int32_t e = experts - 1; left > 0; --e) {
      if (resident(l, e)) continue;
      on_cpu_[l].insert(e);
      --left;
    }
  }
}

void StreamPass::write_table() {
  // Without hits all passes share one table. No host wait says when an earlier copy of it has run, so it is
  // written once.
  if (state_.settings.compare.hits == HitMode::kOff && table_written_) return;
  auto* table = host_table_.as<int32_t>();
  const bool in_place = state_.settings.compare.hits == HitMode::kInPlace;
  state_.device.host_writes({host_table_.data(), host_table_.bytes()}, "pass table");
  for (const Tile& tile : tiles_) {
    for (int32_t e = tile.first; e < tile.last; ++e) {
      const size_t at = index(tile.layer, e);
      table[at] = on_cpu_[tile.layer].contains(e)  ? -1
                  : in_place && hit_slot_[at] >= 0 ? hit_slot_[at]
                                                   : static_cast<int32_t>(tile.first_slot()) + e - tile.first;
    }
  }
  state_.compute.copy("pass table", table_.data(), table, host_table_.bytes());
  table_written_ = true;
}

void StreamPass::prefetch_until(size_t count) {
  for (; prefetched_ < std::min(count, tiles_.size()); ++prefetched_) prefetch(tiles_[prefetched_]);
}

void StreamPass::prefetch(const Tile& tile) {
  Stream& stream = copy_stream();
  const LayerState& layer = state_.layers[tile.layer];
  const size_t row = layer.pool->layout.row_bytes;
  stream.wait(*tile.half().released);
  if (!state_.settings.compare.epoch_invalidation && !state_.settings.mutations.keep_region_mapped) {
    slot_ops::invalidate(stream, layer.pool->map.view(), static_cast<int32_t>(tile.first_slot()),
                         static_cast<int32_t>(tile.ring->tile_experts));
  }
  // Missing experts that follow each other cross as one entry: host rows and region slots both lie in order.
  std::vector<CopyEntry> entries;
  for (int32_t e = tile.first; e < tile.last; ++e) {
    if (!crosses(tile.layer, e)) continue;
    const int32_t run = e;
    while (e + 1 < tile.last && crosses(tile.layer, e + 1)) ++e;
    const size_t bytes = static_cast<size_t>(e + 1 - run) * row;
    entries.push_back(
        {layer.pool->slot(tile.first_slot() + run - tile.first), layer.rows->row(ExpertId(run)), bytes});
    streamed_bytes_ += bytes;
  }
  const bool first = first_copy_bytes_ == 0 && !entries.empty();
  if (first) stream.record(*first_copy_from_);
  state_.copy_rows(stream, "stream experts", layer, entries);
  if (first) {
    first_copy_bytes_ = streamed_bytes_;
    stream.record(*first_copy_to_);
  }
  stream.record(*tile.half().ready);
}

void StreamPass::count_again(const Tile& tile) {
  const LayerState& layer = state_.layers[tile.layer];
  ExpertSet streamed(static_cast<int32_t>(state_.shape.experts));
  for (int32_t e = tile.first; e < tile.last; ++e) {
    if (crosses(tile.layer, e)) streamed.insert(e);
  }
  count_streamed_again(state_.compute, layer.pool->map.view(), layer.local, streamed,
                       counters_.as<StreamCounters>() + tile.layer);
}

void StreamPass::gather_hits(const Tile& tile) {
  // The published form: hits are collected beside the misses, on the compute stream.
  const LayerState& layer = state_.layers[tile.layer];
  std::vector<CopyEntry> entries;
  for (int32_t e = tile.first; e < tile.last; ++e) {
    const int32_t slot = hit_slot_[index(tile.layer, e)];
    if (slot < 0) continue;
    entries.push_back({layer.pool->slot(tile.first_slot() + e - tile.first), layer.pool->slot(slot),
                       layer.pool->layout.row_bytes});
  }
  state_.compute.copy_batch("gather hits", entries);
}

void StreamPass::adopt_last(const Tile& tile, std::span<const MoeBlock> blocks) {
  if (!state_.settings.compare.epoch_invalidation) return;
  size_t first = blocks.size();
  int64_t left = adopt_rows_;
  for (; first > 0 && left > 0; --first) left -= blocks[first - 1].input.routes.rows;
  // Oldest first, so that the last rows are the last to be evicted.
  for (size_t b = first; b < blocks.size(); ++b) {
    const int64_t rows = blocks[b].input.routes.rows + (b == first ? std::min<int64_t>(left, 0) : 0);
    if (rows > 0) adopt(tile, blocks[b].input, rows);
  }
}

// The experts of the last `rows` rows.
void StreamPass::adopt(const Tile& tile, const MoeInput& input, int64_t rows) {
  const LayerState& layer = state_.layers[tile.layer];
  int32_t* where = region_slots_.as<int32_t>();
  const int64_t experts = state_.shape.experts;
  const ExpertSet nowhere = state_.settings.mutations.adopt_from_cpu
                                ? ExpertSet(static_cast<int32_t>(experts))
                                : on_cpu_[tile.layer];
  const int32_t first = tile.first, last = tile.last, slot = static_cast<int32_t>(tile.first_slot());
  state_.compute.launch_both(
      {.name = "slots of the tile", .writes = {range_of(where, experts)}},
      [=](const HostContext&) {
        std::fill(where, where + experts, -1);
        for (int32_t e = first; e < last; ++e) {
          if (!nowhere.contains(e)) where[e] = slot + e - first;
        }
      },
      SLUICE_CUDA_OP(cuda::tile_slots, where, experts, first, last, slot, nowhere));
  const int64_t n = rows * input.routes.k;
  const int32_t* ids = input.routes.ids + input.routes.rows * input.routes.k - n;
  slot_ops::adopt(state_.compute, layer.pool->map.view(), layer.local, ids, n, where, layer.adopted->plan);
  state_.note(SlotWrite::kAdoption, layer, layer.adopted->plan);
  gather_rows(state_.compute, "adopt experts", layer.adopted->plan, layer.pool->slot(0), layer.pool->slot(0),
              layer.pool->layout.row_bytes);
}

bool StreamPass::splits_layers() const { return tiles_.size() > state_.layers.size(); }

void StreamPass::run(Stream& compute, const MoeInput& input, float* y) {
  const MoeBlock block{input, y};
  run_blocks(compute, {&block, 1});
}

void StreamPass::post_block(Stream& compute, const MoeBlock& block) {
  const MoeInput& input = block.input;
  const auto l = static_cast<size_t>(input.layer);
  route_to_cpu(compute, on_cpu_[l], input.routes.ids, input.routes.rows * input.routes.k,
               state_.cpu_ids_scratch(), counters_.as<StreamCounters>() + l);
  state_.cpu->post(compute, input, state_.cpu_ids_scratch());
}

void StreamPass::take_block(Stream& compute, std::span<const MoeBlock> blocks, size_t number) {
  const bool next = number + 1 < blocks.size();
  const bool early = state_.settings.mutations.post_before_take;
  if (next && early) post_block(compute, blocks[number + 1]);
  state_.cpu->take(compute, blocks[number].input, state_.cpu_ids_scratch());
  if (next && !early) post_block(compute, blocks[number + 1]);
}

void StreamPass::run_blocks(Stream& compute, std::span<const MoeBlock> blocks) {
  const auto l = static_cast<size_t>(blocks.front().input.layer);
  const LayerState& layer = state_.layers[l];
  const int32_t* row_of = table_.as<int32_t>() + index(l, 0);
  const size_t ahead = state_.settings.compare.overlap ? 2 : 1;
  const size_t tiles = first_tile_[l + 1] - first_tile_[l];
  size_t products = 0;  // of this layer, so far: tiles x blocks in the end
  if (uses_cpu_[l]) post_block(compute, blocks.front());
  for (size_t t = first_tile_[l]; t < first_tile_[l + 1]; ++t) {
    const Tile& tile = tiles_[t];
    prefetch_until(t + ahead);
    if (t == first_tile_[l]) {
      for (const MoeBlock& block : blocks) run_beside(compute, block.input);
    }
    compute.wait(*tile.half().ready);
    // Now: decode steps may have brought some of them until here.
    if (state_.settings.compare.epoch_invalidation) count_again(tile);
    if (state_.settings.compare.hits == HitMode::kDeviceToDevice) gather_hits(tile);
    for (const MoeBlock& block : blocks) {
      const MoeInput& input = block.input;
      expert_products(compute, input.x, input.routes, layer.view(row_of), tile.first, tile.last,
                      input.activations, input.outputs);
      if (uses_cpu_[l] && ++products % tiles == 0) take_block(compute, blocks, products / tiles - 1);
      // At once, so that blocks whose experts cross in one tile can share the memory of their outputs.
      if (t + 1 == first_tile_[l + 1]) {
        expert_sums(compute, input.outputs, input.routes, layer.rows->layout.hidden, block.y);
      }
    }
    const bool late = state_.settings.mutations.adopt_after_release;
    if (!late) adopt_last(tile, blocks);
    compute.record(*tile.half().released);
    if (late) adopt_last(tile, blocks);
  }
  if (state_.settings.compare.epoch_invalidation) {
    slot_ops::release_layer(compute, layer.pool->map.view(), layer.local);
  }
}

void StreamPass::end() {
  if (!state_.pass_open) return;
  state_.pass_open = false;
  for (const Ring& ring : rings_) {
    for (const Half& half : ring.halves)
      state_.compute.wait(*half.ready);  // copies of a pass that was given up
  }
  if (!state_.settings.compare.epoch_invalidation) {
    // The copy stream has written the map until now, but only inside the region.
    for (size_t t = 0; t < prefetched_; ++t) count_again(tiles_[t]);
    return;
  }
  for (const Ring& ring : rings_) {
    const SlotMapView& map = ring.pool->map.view();
    if (state_.settings.mutations.keep_region_mapped) {
      mutated::end_region_still_mapped(state_.compute, map);
    } else {
      slot_ops::end_region(state_.compute, map);
    }
  }
}

}  // namespace sluice
