// The parts of a stream that every backend shares.
#include "device/stream.h"

#include <cstring>
#include <string>

#include "base/error.h"
#include "device/faults.h"
#include "device/link_pace.h"

namespace sluice {

StreamTotals& StreamTotals::operator+=(const StreamTotals& other) {
  launches += other.launches;
  copies += other.copies;
  read_bytes += other.read_bytes;
  written_bytes += other.written_bytes;
  copied_bytes += other.copied_bytes;
  flops += other.flops;
  return *this;
}

StreamTotals StreamTotals::operator-(const StreamTotals& other) const {
  return {launches - other.launches,         copies - other.copies,
          read_bytes - other.read_bytes,     written_bytes - other.written_bytes,
          copied_bytes - other.copied_bytes, flops - other.flops};
}

void Stream::count(const OpInfo& op) {
  ++totals_.launches;
  for (const ByteRange& range : op.reads) totals_.read_bytes += range.bytes;
  for (const ByteRange& range : op.writes) totals_.written_bytes += range.bytes;
  totals_.flops += op.flops;
}

QueuedOp Stream::queued(const OpInfo& op, DataRanges ranges, std::function<void(const HostContext&)> body) {
  QueuedOp result;
  result.name = op.name;
  result.reads.assign(op.reads.begin(), op.reads.end());
  result.writes.assign(op.writes.begin(), op.writes.end());
  result.data_ranges = std::move(ranges);
  result.flops = op.flops;
  result.body = std::move(body);
  return result;
}

// A deferred stream meets the failure where the copy would have run, as a real device does.
void Stream::fail_copy(const char* name) {
  auto fail = [text = std::string(name)](const HostContext&) {
    throw Error(ErrorCode::kIo, "copy '" + text + "' failed");
  };
  if (const HostContext* context = inline_context()) fail(*context);
  QueuedOp op;
  op.name = name;
  op.is_copy = true;
  op.body = std::move(fail);
  enqueue(std::move(op));
}

void Stream::copy(const char* name, void* target, const void* source, size_t bytes) {
  const CopyEntry entry{target, source, bytes};
  copy_batch(name, {&entry, 1});
}

void Stream::copy_batch(const char* name, std::span<const CopyEntry> entries) {
  size_t bytes = 0;
  for (const CopyEntry& entry : entries) bytes += entry.bytes;
  if (bytes == 0) return;
  ++totals_.copies;
  totals_.copied_bytes += bytes;
  if (faults_ != nullptr && faults_->refuses(Fault::kCopy, name)) return fail_copy(name);
  if (const HostContext* context = inline_context()) {
    LinkCrossing crossing(context->link);
    for (const CopyEntry& entry : entries) {
      if (entry.bytes == 0) continue;
      std::memcpy(entry.target, entry.source, entry.bytes);
      crossing.add(entry.source, entry.bytes);
    }
    return;
  }
  QueuedOp op;
  op.name = name;
  op.is_copy = true;
  for (const CopyEntry& entry : entries) {
    if (entry.bytes == 0) continue;
    op.reads.push_back({entry.source, entry.bytes});
    op.writes.push_back({entry.target, entry.bytes});
    op.entries.push_back(entry);
  }
  enqueue(std::move(op));
}

}  // namespace sluice
