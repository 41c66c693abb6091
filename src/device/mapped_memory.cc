// Anonymous mappings without a reservation.
#include "device/mapped_memory.h"

#include <sys/mman.h>

#include <string>

#include "base/error.h"
#include "base/units.h"

namespace sluice {

Buffer map_memory(size_t bytes, std::string_view purpose) {
  void* data =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    throw Error(ErrorCode::kOutOfMemory,
                std::string(purpose) + ": cannot get " + format_bytes(bytes) + " of memory");
  }
  return Buffer(data, bytes, [](void* p, size_t n) { ::munmap(p, n); });
}

}  // namespace sluice
