// The parts of a stream that every backend shares.
#include "device/stream.h"

#include <cstring>

namespace sluice {

void Stream::count(const OpInfo& op) {
  ++totals_.launches;
  for (const ByteRange& range : op.reads) totals_.read_bytes += range.bytes;
  for (const ByteRange& range : op.writes) totals_.written_bytes += range.bytes;
  totals_.flops += op.flops;
}

void Stream::copy(const char* name, void* target, const void* source, size_t bytes) {
  if (bytes == 0) return;
  launch({.name = name, .reads = {{source, bytes}}, .writes = {{target, bytes}}},
         [=](const HostContext&) { std::memcpy(target, source, bytes); });
  ++totals_.copies;
  --totals_.launches;
  totals_.copied_bytes += bytes;
}

}  // namespace sluice
