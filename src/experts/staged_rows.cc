// The pieces of staged copies and their fences.
#include "experts/staged_rows.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "experts/cuda/expert_ops.h"
#include "experts/expert_state.h"

namespace sluice {
namespace {

constexpr int64_t kCopyGrain = int64_t{1} << 18;  // bytes a thread copies at once

void copy_in_parallel(const HostContext& host, std::byte* target, const std::byte* source, size_t bytes) {
  host.pool.parallel_for(static_cast<int64_t>(bytes), kCopyGrain, [=](int64_t begin, int64_t end) {
    std::memcpy(target + begin, source + begin, static_cast<size_t>(end - begin));
  });
}

}  // namespace

StagedRows::StagedRows(Device& device, size_t row_bytes, int32_t plan_entries)
    : staging_(device.make_stream("staging", Priority::kNormal)),
      piece_bytes_(static_cast<size_t>(kRows) * row_bytes) {
  const size_t plan_words = 2 * static_cast<size_t>(plan_entries) + 1;
  memory_ = device.allocate(kBuffers * piece_bytes_, "staging ring", MemoryKind::kPinned);
  plans_ = device.allocate(kBuffers * plan_words * sizeof(int32_t), "staged plans", MemoryKind::kPinned);
  for (size_t b = 0; b < kBuffers; ++b) {
    const std::string suffix = " " + std::to_string(b);
    pieces_[b] = {memory_.as<std::byte>() + b * piece_bytes_, plans_.as<int32_t>() + b * plan_words,
                  device.make_event("staged" + suffix), device.make_event("unstaged" + suffix)};
  }
}

StagedRows::Piece& StagedRows::acquire() {
  Piece& piece = pieces_[next_++ % kBuffers];
  staging_->wait(*piece.read);
  return piece;
}

void StagedRows::fill(Piece& piece, const std::byte* source, size_t bytes) {
  std::byte* target = piece.data;
  staging_->launch_on_host({.name = "stage rows", .reads = {{source, bytes}}, .writes = {{target, bytes}}},
                           [=](const HostContext& host) { copy_in_parallel(host, target, source, bytes); });
}

void StagedRows::copy(Stream& target, const char* name, std::span<const CopyEntry> entries) {
  for (const CopyEntry& entry : entries) {
    for (size_t done = 0; done < entry.bytes;) {
      const size_t bytes = std::min(entry.bytes - done, piece_bytes_);
      Piece& piece = acquire();
      fill(piece, static_cast<const std::byte*>(entry.source) + done, bytes);
      staging_->record(*piece.filled);
      target.wait(*piece.filled);
      target.copy(name, static_cast<std::byte*>(entry.target) + done, piece.data, bytes);
      target.record(*piece.read);
      done += bytes;
    }
  }
}

void StagedRows::gather(Stream& target, const char* name, const Event& planned, const OwnedPlan& owned,
                        int64_t most, const std::byte* rows, std::byte* slots, size_t row_bytes) {
  const CopyPlan& plan = owned.plan;
  most = std::min<int64_t>(most, plan.capacity);
  const int32_t capacity = plan.capacity;
  staging_->wait(planned);
  // A row a piece: the first one leaves as soon as it is there, and a decode step has few.
  for (int64_t first = 0; first < most; ++first) {
    const int64_t last = first + 1;
    Piece& piece = acquire();
    staging_->copy("staged plan", piece.plan, owned.memory.data(), owned.memory.bytes());
    // The copy lies as the plan does: the count, then slots, then rows.
    const int32_t *count = piece.plan, *row_of = piece.plan + 1 + capacity;
    std::byte* data = piece.data;
    const auto each = [=](auto&& call) {
      for (int64_t i = first; i < std::min<int64_t>(last, *count); ++i) {
        call(data + static_cast<size_t>(i - first) * row_bytes,
             rows + static_cast<size_t>(row_of[i]) * row_bytes);
      }
    };
    const auto ranges = [=](RangeSink& sink) {
      each([&](std::byte* to, const std::byte* from) {
        sink.reads({from, row_bytes});
        sink.writes({to, row_bytes});
      });
    };
    staging_->launch_on_host(
        {.name = "stage rows", .reads = {range_of(piece.plan, 1 + 2 * int64_t{capacity})}}, ranges,
        [=](const HostContext& host) {
          each([&](std::byte* to, const std::byte* from) { copy_in_parallel(host, to, from, row_bytes); });
        });
    staging_->record(*piece.filled);

    target.wait(*piece.filled);
    const int32_t *plan_count = plan.count, *slot_of = plan.dst_slot;
    const auto place = [=](auto&& call) {
      for (int64_t i = first; i < std::min<int64_t>(last, *plan_count); ++i) {
        call(slots + static_cast<size_t>(slot_of[i]) * row_bytes,
             data + static_cast<size_t>(i - first) * row_bytes);
      }
    };
    const auto placed = [=](RangeSink& sink) {
      sink.reads(range_of(slot_of, std::min<int64_t>(last, *plan_count)));
      place([&](std::byte* to, const std::byte* from) {
        sink.reads({from, row_bytes});
        sink.writes({to, row_bytes});
      });
    };
    target.launch_both(
        {.name = name, .reads = {range_of(plan_count, 1)}}, placed,
        [=](const HostContext&) {
          place([&](std::byte* to, const std::byte* from) { std::memcpy(to, from, row_bytes); });
        },
        SLUICE_CUDA_OP(cuda::place_rows, plan, first, last, data, slots, row_bytes));
    target.record(*piece.read);
  }
}

}  // namespace sluice
