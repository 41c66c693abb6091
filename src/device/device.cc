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

std::unique_ptr<ReservedMemory> Device::reserve(size_t most_bytes, std::string purpose) {
  return reserve_memory(most_bytes, std::move(purpose));
}

void Device::resize(ReservedMemory& memory, size_t bytes) {
  SLUICE_CHECK_MSG(bytes <= memory.most_bytes_, "more than what was reserved");
  if (bytes == memory.bytes_) return;
  if (bytes > memory.bytes_ && faults_.refuses(Fault::kAllocation, memory.purpose_)) {
    throw Error(ErrorCode::kOutOfMemory,
                memory.purpose_ + ": " + format_bytes(bytes - memory.bytes_) + " more were refused");
  }
  memory.back(bytes);
  allocated_ += bytes - memory.bytes_;
  memory.bytes_ = bytes;
}

LockResult Device::lock_pages(ByteRange range, std::string_view purpose) {
  if (faults_.refuses(Fault::kPageLock, purpose)) {
    return {.locked = false,
            .refusal = std::string(purpose) + ": page-locking " + format_bytes(range.bytes) + " was refused"};
  }
  LockResult result = lock_memory(range);
  if (!result) result.refusal = std::string(purpose) + ": " + result.refusal;
  return result;
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
