// The host backend, inline: CPU serving, and the reference for every other form.
#include <sys/mman.h>

#include <string>

#include "base/error.h"
#include "base/thread_pool.h"
#include "base/units.h"
#include "device/device.h"

namespace sluice {
namespace {

class HostStream final : public Stream {
 public:
  explicit HostStream(ThreadPool& pool) : context_{pool} {}
  Backend backend() const override { return Backend::kHost; }
  void synchronize() override {}

 protected:
  const HostContext& inline_context() const override { return context_; }

 private:
  HostContext context_;
};

class HostDevice final : public Device {
 public:
  explicit HostDevice(int threads) : pool_(threads) {}
  Backend backend() const override { return Backend::kHost; }

  // Mapped, not malloc'd: pages that nobody writes (the tail of a KV cache) cost nothing.
  Buffer allocate(size_t bytes, std::string_view purpose) override {
    if (bytes == 0) return {};
    void* data =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) {
      throw Error(ErrorCode::kOutOfMemory,
                  std::string(purpose) + ": cannot get " + format_bytes(bytes) + " of memory");
    }
    allocated_ += bytes;
    return Buffer(data, bytes, [](void* p, size_t n) { ::munmap(p, n); });
  }

  std::unique_ptr<Stream> make_stream() override { return std::make_unique<HostStream>(pool_); }

 private:
  ThreadPool pool_;
};

}  // namespace

std::unique_ptr<Device> make_host_device(int threads) { return std::make_unique<HostDevice>(threads); }

}  // namespace sluice
