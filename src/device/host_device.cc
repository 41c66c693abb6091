// The host backend, inline: CPU serving, and the reference for every other form.
#include <string>

#include "base/error.h"
#include "base/thread_pool.h"
#include "device/device.h"
#include "device/mapped_memory.h"

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

  std::unique_ptr<Event> make_event(std::string) override { return std::make_unique<HostEvent>(); }
  void wait(const Event&, std::string_view why) override { count_wait(why); }
  void wait(Stream&, std::string_view why) override { count_wait(why); }
  bool done(const Event&) override { return true; }

 protected:
  Buffer allocate_memory(size_t bytes, std::string_view purpose, MemoryKind) override {
    return map_memory(bytes, purpose);
  }
  std::unique_ptr<Stream> new_stream(std::string, Priority) override {
    return std::make_unique<HostStream>(pool_);
  }

 private:
  ThreadPool pool_;
};

}  // namespace

std::unique_ptr<Device> make_host_device(int threads) { return std::make_unique<HostDevice>(threads); }

}  // namespace sluice
