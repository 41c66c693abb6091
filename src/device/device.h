// A device: where buffers are allocated and streams are made.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/faults.h"
#include "device/reserved_memory.h"
#include "device/stream.h"

namespace sluice {

/// Device memory. Move-only owner; freed with the object. 64-byte aligned, content undefined until written.
class Buffer {
 public:
  using Free = std::function<void(void*, size_t)>;
  Buffer() = default;
  Buffer(void* data, size_t bytes, Free free) : data_(data), bytes_(bytes), free_(std::move(free)) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) free_(data_, bytes_);
  }

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void swap(Buffer& other) {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(free_, other.free_);
  }

  void* data_ = nullptr;
  size_t bytes_ = 0;
  Free free_;
};

/// Where memory lies. Pinned memory is host memory that the link can read; kernels may read it too.
enum class MemoryKind { kDevice, kPinned };

/// Whether host memory was page-locked. A refusal is an ordinary answer: the caller stages that memory
/// instead.
struct LockResult {
  bool locked = false;
  std::string refusal;  // why not, for the report
  explicit operator bool() const { return locked; }
};

/// What operations of one name took, summed up.
struct OpTime {
  std::string name;
  int64_t count = 0;
  double us = 0;
};

/// One device of one backend. Outlives its streams and events.
class Device {
 public:
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual Backend backend() const = 0;
  /// Throws Error kOutOfMemory that names `purpose` and the bytes. Zero bytes give an empty buffer.
  Buffer allocate(size_t bytes, std::string_view purpose, MemoryKind kind = MemoryKind::kDevice);
  template <class T>
  Buffer allocate_array(int64_t count, std::string_view purpose) {
    return allocate(static_cast<size_t>(count) * sizeof(T), purpose);
  }
  /// Addresses for `most_bytes` > 0 of device memory, none of it backed yet. Throws Error kOutOfMemory.
  std::unique_ptr<ReservedMemory> reserve(size_t most_bytes, std::string purpose);
  /// Backs the first `bytes` of `memory`: what is kept stays as it is where it is. Nothing that is queued may
  /// still need bytes that go. Throws Error kOutOfMemory that names the purpose; nothing has changed then.
  void resize(ReservedMemory& memory, size_t bytes);
  /// Page-locks memory that this device did not allocate as pinned, so that the link reads it at its full
  /// rate. May be called from one other thread while this one uses the device.
  LockResult lock_pages(ByteRange range, std::string_view purpose);
  void unlock_pages(ByteRange range) { unlock_memory(range); }

  /// Whether the device reads host memory over a link, which needs locked pages.
  virtual bool needs_locked_pages() const { return false; }
  /// The memory node of the host that is nearest to the device; -1 where it has none.
  virtual int numa_node() const { return -1; }

  std::unique_ptr<Stream> make_stream() { return make_stream("compute", Priority::kNormal); }
  /// `name` shows in traces and race reports.
  std::unique_ptr<Stream> make_stream(std::string name, Priority priority);
  virtual std::unique_ptr<Event> make_event(std::string name) = 0;

  /// The host waits until the latest record of `event` has run. Counted under `why`.
  virtual void wait(const Event& event, std::string_view why) = 0;
  /// The host waits until everything queued on `stream` has run. Counted under `why`.
  virtual void wait(Stream& stream, std::string_view why) = 0;
  /// Whether the latest record of `event` has run (true if there is none). Never waits.
  virtual bool done(const Event& event) = 0;
  /// Device memory that may still be given out; nothing where it is host memory.
  virtual std::optional<size_t> free_bytes() const { return std::nullopt; }
  /// Microseconds between the latest records of two events that have both run; nothing where the device keeps
  /// no times, or one of them was recorded inside a graph or never.
  virtual std::optional<double> elapsed_us(const Event&, const Event&) const { return std::nullopt; }
  /// From now on operations are timed one by one, by name; nothing is recorded as a graph meanwhile. Ignored
  /// where the device has no timers.
  virtual void time_ops(bool) {}
  /// What was timed since the last call, most time first; the host waits for all of it.
  virtual std::vector<OpTime> take_op_times() { return {}; }
  /// Whether copies of one stream go on beside kernels of another.
  virtual bool overlaps_copies() const { return true; }

  /// The host is about to read or write memory that operations use too. Costs nothing unless a checker
  /// listens.
  virtual void host_reads(ByteRange, const char*) {}
  virtual void host_writes(ByteRange, const char*) {}

  /// The clock that this device's durations are measured by, in microseconds from any start. Simulated where
  /// the device is, and standing still where schedules are explored.
  virtual double now_us() const;

  /// Host waits since the start, by reason. Tests assert these numbers.
  const std::map<std::string, int64_t, std::less<>>& host_waits() const { return host_waits_; }
  /// Bytes that allocate() has given out since the start, and those behind reserved memory.
  size_t allocated_bytes() const { return allocated_; }

  /// What tests make this device refuse. Empty otherwise.
  FaultPlan& faults() { return faults_; }

 protected:
  Device() = default;
  void count_wait(std::string_view why);

  /// `bytes` > 0. Throws Error kOutOfMemory.
  virtual Buffer allocate_memory(size_t bytes, std::string_view purpose, MemoryKind kind) = 0;
  virtual std::unique_ptr<ReservedMemory> reserve_memory(size_t most_bytes, std::string purpose) {
    return reserve_mapped(most_bytes, std::move(purpose));
  }
  virtual std::unique_ptr<Stream> new_stream(std::string name, Priority priority) = 0;
  virtual LockResult lock_memory(ByteRange) { return {.locked = true, .refusal = {}}; }
  virtual void unlock_memory(ByteRange) {}

 private:
  size_t allocated_ = 0;
  FaultPlan faults_;
  std::map<std::string, int64_t, std::less<>> host_waits_;
};

/// The host backend in its inline form: device memory is host memory, and an operation runs when it is
/// called, on the threads of one pool. `threads` 0 means all usable cores. With `link_bytes_per_ms` > 0 what
/// copies and gathers read from host memory takes as long as over such a link.
std::unique_ptr<Device> make_host_device(int threads = 0, double link_bytes_per_ms = 0);

}  // namespace sluice
