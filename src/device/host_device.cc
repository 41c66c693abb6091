// The host backend, inline: CPU serving, and the reference for every other form.
#include <sys/mman.h>

#include <string>

#include "base/error.h"
#include "base/thread_pool.h"
#include "base/units.h"
#include "device/device.h"

namespace sluice {
namespace {

class HostEvent final : public Event {};

class HostStream final : public Stream {
 public:
  explicit HostStream(ThreadPool& pool) : context_{pool} {}
  Backend backend() const override { return Backend::kHost; }
  void record(Event&) override {}
  void wait(const Event&) override {}

 protected:
  const HostContext* inline_context() const override { return &context_; }
  void enqueue(QueuedOp) override { SLUICE_CHECK_MSG(false, "an inline stream keeps no operations"); }

 private:
  HostContext context_;
};

class HostDevice final : public Device {
 public:
  explicit HostDevice(int threads) : pool_(threads) {}
  Backend backend() const override { return Backend::kHost; }

  using Device::allocate;
  using Device::make_stream;

  // Mapped, not malloc'd: pages that nobody writes (the tail of a KV cache) cost nothing.
  Buffer allocate(size_t bytes, std::string_view purpose, MemoryKind) override {
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

  std::unique_ptr<Stream> make_stream(std::string, Priority) override {
    return std::make_unique<HostStream>(pool_);
  }
  std::unique_ptr<Event> make_event(std::string) override { return std::make_unique<HostEvent>(); }
  void wait(const Event&, std::string_view why) override { count_wait(why); }
  void wait(Stream&, std::string_view why) override { count_wait(why); }
  bool done(const Event&) override { return true; }

 private:
  ThreadPool pool_;
};

}  // namespace

std::unique_ptr<Device> make_host_device(int threads) { return std::make_unique<HostDevice>(threads); }

}  // namespace sluice
