// Experts of layers whose pages are not locked: their bytes reach the device through a locked ring.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "experts/slot_map.h"

namespace sluice {

struct OwnedPlan;

/// Copies in pieces of up to kRows rows. A piece is copied into a buffer of the ring by host threads, in the
/// order of a stream of its own, and from there to the device by the stream that wants it:
///   staging: piece -> [filled b] -> target: copy or gather -> [read b] -> staging: the piece after next use
/// of b
/// No host wait: also where the device has made the plan, host threads read it from a copy in stream order.
class StagedRows {
 public:
  /// row_bytes: the largest row. `plan_entries`: the longest plan. Throws Error kOutOfMemory.
  StagedRows(Device& device, size_t row_bytes, int32_t plan_entries);

  /// As Stream::copy_batch, for entries whose sources are rows that are not locked.
  void copy(Stream& target, const char* name, std::span<const CopyEntry> entries);
  /// As gather_rows. `planned` was recorded behind the writing of the plan, which has at most `most` entries;
  /// `target` has waited for it.
  void gather(Stream& target, const char* name, const Event& planned, const OwnedPlan& plan, int64_t most,
              const std::byte* rows, std::byte* slots, size_t row_bytes);

  size_t ring_bytes() const { return memory_.bytes(); }

 private:
  static constexpr int64_t kRows = 2;
  static constexpr size_t kBuffers = 4;
  struct Piece {
    std::byte* data = nullptr;
    int32_t* plan = nullptr;  // a copy of the plan, as it lies there
    std::unique_ptr<Event> filled, read;
  };
  /// The next buffer, which the staging stream may fill.
  Piece& acquire();
  void fill(Piece& piece, const std::byte* source, size_t bytes);

  std::unique_ptr<Stream> staging_;
  Buffer memory_, plans_;  // pinned
  std::array<Piece, kBuffers> pieces_;
  size_t piece_bytes_ = 0, next_ = 0;
};

}  // namespace sluice
