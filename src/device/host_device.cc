// The host backend, inline: CPU serving, and the reference for every other form.
#include <chrono>
#include <string>

#include "base/error.h"
#include "base/thread_pool.h"
#include "device/device.h"
#include "device/mapped_memory.h"

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;

// Everything before a record has run when it is made.
class HostEvent final : public Event {
 public:
  Clock::time_point at;
};

class HostStream final : public Stream {
 public:
  explicit HostStream(ThreadPool& pool) : context_{pool} {}
  Backend backend() const override { return Backend::kHost; }
  void record(Event& event) override { static_cast<HostEvent&>(event).at = Clock::now(); }
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
  std::optional<double> elapsed_us(const Event& from, const Event& to) const override {
    const auto &first = static_cast<const HostEvent&>(from), &last = static_cast<const HostEvent&>(to);
    return std::chrono::duration<double, std::micro>(last.at - first.at).count();
  }
  bool overlaps_copies() const override { return false; }

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
