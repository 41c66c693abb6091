// Reserved addresses of the host backend.
#include "device/reserved_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/units.h"

namespace sluice {
namespace {

size_t up_to_page(size_t bytes) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

class MappedRange final : public ReservedMemory {
 public:
  MappedRange(std::shared_ptr<void> pages, size_t most, std::string purpose, ResizeListener listener,
              bool keep_pages)
      : ReservedMemory(std::move(pages), most, std::move(purpose)),
        listener_(std::move(listener)),
        keep_pages_(keep_pages) {}
  ~MappedRange() override {
    if (bytes() > 0 && listener_) listener_(*this, bytes(), 0);
  }

 protected:
  void back(size_t after) override {
    const size_t before = bytes(), from = up_to_page(before), to = up_to_page(after);
    auto* base = static_cast<std::byte*>(data());
    if (to > from && ::mprotect(base + from, to - from, PROT_READ | PROT_WRITE) != 0) {
      throw Error(ErrorCode::kOutOfMemory,
                  purpose() + ": cannot get " + format_bytes(after - before) + " more memory");
    }
    if (listener_) listener_(*this, before, after);
    if (to >= from || keep_pages_) return;
    // A new mapping over the tail gives its pages back; if the system refuses, they stay and nobody uses
    // them.
    ::mmap(base + to, from - to, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  }

 private:
  ResizeListener listener_;
  bool keep_pages_;
};

}  // namespace

std::unique_ptr<ReservedMemory> reserve_mapped(size_t most_bytes, std::string purpose,
                                               ResizeListener listener, bool keep_pages) {
  SLUICE_CHECK(most_bytes > 0);
  void* data =
      ::mmap(nullptr, up_to_page(most_bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    throw Error(ErrorCode::kOutOfMemory,
                purpose + ": cannot reserve addresses for " + format_bytes(most_bytes));
  }
  std::shared_ptr<void> pages(data, [most_bytes](void* range) { ::munmap(range, up_to_page(most_bytes)); });
  return std::make_unique<MappedRange>(std::move(pages), most_bytes, std::move(purpose), std::move(listener),
                                       keep_pages);
}

}  // namespace sluice
