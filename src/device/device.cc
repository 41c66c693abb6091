// The parts of a device that every backend shares.
#include "device/device.h"

#include <chrono>

#include "base/error.h"
#include "base/units.h"

namespace sluice {

Buffer Device::allocate(size_t bytes, std::string_view purpose, MemoryKind kind) {
  if (bytes == 0) return {};
  if (faults_.refuses(Fault::kAllocation, purpose)) {
    throw Error(ErrorCode::kOutOfMemory, std::string(purpose) + ": " + format_bytes(bytes) + " were refused");
  }
  Buffer buffer = allocate_memory(bytes, purpose, kind);
  allocated_ += bytes;
  return buffer;
}

LockResult Device::lock_pages(ByteRange range, std::string_view purpose) {
  if (faults_.refuses(Fault::kPageLock, purpose)) {
    return {.locked = false,
            .refusal = std::string(purpose) + ": page-locking " + format_bytes(range.bytes) + " was refused"};
  }
  return lock_memory(range);
}

std::unique_ptr<Stream> Device::make_stream(std::string name, Priority priority) {
  std::unique_ptr<Stream> stream = new_stream(std::move(name), priority);
  stream->faults_ = &faults_;
  return stream;
}

double Device::now_us() const {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Device::count_wait(std::string_view why) {
  const auto found = host_waits_.find(why);
  if (found != host_waits_.end()) {
    ++found->second;
  } else {
    host_waits_.emplace(why, 1);
  }
}

}  // namespace sluice
