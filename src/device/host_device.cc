// The host backend, inline: CPU serving, and the reference for every other form.
#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/thread_pool.h"
#include "base/units.h"
#include "device/device.h"
#include "device/link_pace.h"
#include "device/mapped_memory.h"

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;

// Everything before a record has run when it is made.
class HostEvent final : public Event {
 public:
  Clock::time_point at;
};

// What a refused mlock means and what to do about it.
std::string refusal_of(size_t bytes, int error) {
  std::string text = "page-locking " + format_bytes(bytes) + " was refused (" + std::strerror(error) + ")";
  rlimit limit{};
  if (error == EAGAIN || ::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return text;
  return text + ": the limit of locked memory is " + format_bytes(limit.rlim_cur) +
         "; raise it (ulimit -l unlimited, or LimitMEMLOCK=infinity of a service)";
}

class HostStream final : public Stream {
 public:
  HostStream(ThreadPool& pool, const LinkPace* link) : context_{pool, link} {}
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
  HostDevice(int threads, double link_bytes_per_ms) : pool_(threads) {
    if (link_bytes_per_ms > 0) link_ = std::make_shared<LinkPace>(link_bytes_per_ms);
  }
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
  Buffer allocate_memory(size_t bytes, std::string_view purpose, MemoryKind kind) override {
    Buffer memory = map_memory(bytes, purpose);
    if (link_ == nullptr || kind != MemoryKind::kDevice) return memory;
    void* data = memory.data();
    link_->add_device(data, bytes);
    auto kept = std::make_shared<Buffer>(std::move(memory));
    return Buffer(data, bytes, [kept, link = link_](void* freed, size_t) { link->remove_device(freed); });
  }
  std::unique_ptr<ReservedMemory> reserve_memory(size_t most_bytes, std::string purpose) override {
    if (link_ == nullptr) return reserve_mapped(most_bytes, std::move(purpose));
    return reserve_mapped(most_bytes, std::move(purpose),
                          [link = link_](ReservedMemory& memory, size_t, size_t after) {
                            link->remove_device(memory.data());
                            if (after > 0) link->add_device(memory.data(), after);
                          });
  }
  std::unique_ptr<Stream> new_stream(std::string, Priority) override {
    return std::make_unique<HostStream>(pool_, link_.get());
  }
  LockResult lock_memory(ByteRange range) override {
    if (::mlock(range.begin, range.bytes) == 0) return {.locked = true, .refusal = {}};
    return {.locked = false, .refusal = refusal_of(range.bytes, errno)};
  }
  void unlock_memory(ByteRange range) override { ::munlock(range.begin, range.bytes); }

 private:
  ThreadPool pool_;
  std::shared_ptr<LinkPace> link_;  // null: no link, copies take what they take
};

}  // namespace

std::unique_ptr<Device> make_host_device(int threads, double link_bytes_per_ms) {
  return std::make_unique<HostDevice>(threads, link_bytes_per_ms);
}

}  // namespace sluice
