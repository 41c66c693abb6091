// Streams: ordered queues of operations. Kernels, copies and waits are written against this interface alone.
//
// Each operation declares the byte ranges that it reads and writes, and its arithmetic. The declarations cost
// one line an operation; they feed the byte counters, and let the deferred forms of the host backend order,
// check and price operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

struct CUstream_st;  // cudaStream_t points to it

namespace sluice {

class FaultPlan;
class LinkPace;
class ThreadPool;

enum class Backend { kHost, kCuda };

/// Which stream goes first where two could run.
enum class Priority { kNormal, kHigh, kHighest };

/// Bytes that an operation touches.
struct ByteRange {
  const void* begin = nullptr;
  size_t bytes = 0;
};

/// The range of `count` elements from `data`.
template <class T>
ByteRange range_of(const T* data, int64_t count) {
  return {data, static_cast<size_t>(count) * sizeof(T)};
}

/// Takes the ranges that an operation touches where they depend on data that the device holds (the rows of a
/// plan).
class RangeSink {
 public:
  virtual ~RangeSink() = default;
  virtual void reads(ByteRange range) = 0;
  virtual void writes(ByteRange range) = 0;
};
/// Called when the operation is about to run, with the device's data as they are then.
using DataRanges = std::function<void(RangeSink&)>;

/// What an operation is. The lists live as long as the call that gets them.
struct OpInfo {
  const char* name = "";
  std::initializer_list<ByteRange> reads = {};
  std::initializer_list<ByteRange> writes = {};
  uint64_t flops = 0;
};

/// What a kernel's host version may use while it runs.
struct HostContext {
  ThreadPool& pool;
  const LinkPace* link = nullptr;  // null: nothing is slowed down (link_pace.h)
};

/// What the launcher of a CUDA kernel needs.
struct CudaContext {
  CUstream_st* stream = nullptr;
  int multiprocessors = 0;
  bool overlaps_launches = false;  // a kernel may begin while the one before it ends
};

/// Stands where an operation has no CUDA version, or the program was built without CUDA.
struct NoCuda {};
constexpr NoCuda no_cuda(const auto&...) { return {}; }

/// One entry of a batched copy; the entries of a batch do not overlap.
struct CopyEntry {
  void* target = nullptr;
  const void* source = nullptr;
  size_t bytes = 0;
};

/// Totals of one stream since it was made.
struct StreamTotals {
  uint64_t launches = 0, copies = 0;
  uint64_t read_bytes = 0, written_bytes = 0, copied_bytes = 0;
  uint64_t flops = 0;

  StreamTotals& operator+=(const StreamTotals& other);
  StreamTotals operator-(const StreamTotals& other) const;
};

/// A point in a stream. Made by Device::make_event; a wait binds to the latest record that was already issued
/// when the wait is issued, and waiting for an event that was never recorded is no wait (the rules of CUDA).
class Event {
 public:
  virtual ~Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

 protected:
  Event() = default;
};

/// Operations that were recorded once and run as one, any number of times. Outlived by its stream.
class Graph {
 public:
  virtual ~Graph() = default;
  virtual int64_t operations() const = 0;  // kernels and copies
};

/// An operation as a deferred stream keeps it.
struct QueuedOp {
  const char* name = "";
  std::vector<ByteRange> reads, writes;
  DataRanges data_ranges;  // empty where everything is known at the call
  uint64_t flops = 0;
  bool is_copy = false;
  std::vector<CopyEntry> entries;                // of a copy
  std::function<void(const HostContext&)> body;  // of a kernel
  bool on_host = false;                          // work of host threads, whatever the device
};

/// An ordered queue. Operations of one stream run in the order of their calls; the caller may not assume that
/// an operation has run before a host wait (Device::wait) returns. Not to be used by two threads at once.
class Stream {
 public:
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  virtual Backend backend() const = 0;

  /// Runs `body(const HostContext&)` in order. The body is copied where the stream is deferred: it captures
  /// by value, and pointers that it holds stay valid until the operation has run. It touches device memory
  /// only inside the declared ranges.
  template <class Body>
  void launch(const OpInfo& op, Body&& body) {
    count(op);
    if (const HostContext* context = inline_context()) return std::forward<Body>(body)(*context);
    enqueue(queued(op, DataRanges(), std::forward<Body>(body)));
  }
  /// The same, with ranges that are only known when the operation runs; `ranges` adds to those of `op`.
  template <class Ranges, class Body>
  void launch(const OpInfo& op, Ranges&& ranges, Body&& body) {
    count(op);
    if (const HostContext* context = inline_context()) return std::forward<Body>(body)(*context);
    enqueue(queued(op, DataRanges(std::forward<Ranges>(ranges)), std::forward<Body>(body)));
  }

  /// As launch, with the operation's CUDA version: `cuda(const CudaContext&)` queues it, written as
  /// SLUICE_CUDA_OP(function, arguments...).
  template <class Body, class Cuda>
  void launch_both(const OpInfo& op, Body&& body, [[maybe_unused]] Cuda&& cuda) {
    if constexpr (!std::is_same_v<std::decay_t<Cuda>, NoCuda>) {
      if (const CudaContext* context = cuda_context())
        return count(op), before_launch(op.name), cuda(*context), check_launch(op.name);
    }
    launch(op, std::forward<Body>(body));
  }
  template <class Ranges, class Body, class Cuda>
  void launch_both(const OpInfo& op, Ranges&& ranges, Body&& body, [[maybe_unused]] Cuda&& cuda) {
    if constexpr (!std::is_same_v<std::decay_t<Cuda>, NoCuda>) {
      if (const CudaContext* context = cuda_context())
        return count(op), before_launch(op.name), cuda(*context), check_launch(op.name);
    }
    launch(op, std::forward<Ranges>(ranges), std::forward<Body>(body));
  }

  /// As launch, for work of host threads between operations of the device: a backend with a real device calls
  /// `body` on the host when the stream comes to it.
  template <class Body>
  void launch_on_host(const OpInfo& op, Body&& body) {
    launch_on_host(op, DataRanges(), std::forward<Body>(body));
  }
  template <class Ranges, class Body>
  void launch_on_host(const OpInfo& op, Ranges&& ranges, Body&& body) {
    count(op);
    if (const HostContext* context = inline_context()) return std::forward<Body>(body)(*context);
    QueuedOp work = queued(op, DataRanges(std::forward<Ranges>(ranges)), std::forward<Body>(body));
    work.on_host = true;
    enqueue(std::move(work));
  }

  /// Copies `bytes` from `source` to `target` in order; the ranges do not overlap. Both stay valid until it
  /// has run. A copy that the device fails throws Error kIo, at the latest from the next host wait.
  void copy(const char* name, void* target, const void* source, size_t bytes);
  /// One call for many copies; `entries` is read before it returns. Empty entries are left out.
  void copy_batch(const char* name, std::span<const CopyEntry> entries);

  /// Marks the end of everything that was queued so far.
  virtual void record(Event& event) = 0;
  /// What is queued from now on runs after the latest record of `event`.
  virtual void wait(const Event& event) = 0;

  /// Calls `queue` and records what it queues here, and on streams that wait for this one and that this one
  /// waits for in the end, instead of running it. Null where the backend records nothing; `queue` is not
  /// called then. Addresses and arguments are kept as they are now. Nothing in it may wait on the host or
  /// copy from or to memory that is not page-locked.
  ///
  /// A graph runs behind everything that this stream has been given, and what runs after it on another stream
  /// waits for this one. So while recording, waits for events of before are left out, and afterwards events
  /// that were recorded inside count as never recorded.
  virtual std::unique_ptr<Graph> capture(const std::function<void()>&) { return nullptr; }
  /// Queues all of `graph`, which this stream has captured.
  virtual void run(const Graph&) {}

  const StreamTotals& totals() const { return totals_; }

 protected:
  Stream() = default;
  StreamTotals& mutable_totals() { return totals_; }
  /// Not null: operations run at once with this context.
  virtual const HostContext* inline_context() const = 0;
  virtual void enqueue(QueuedOp op) = 0;
  /// Not null: kernels run on a CUDA device.
  virtual const CudaContext* cuda_context() const { return nullptr; }
  virtual void before_launch(const char*) {}
  /// Throws what the launch of a CUDA kernel has met.
  virtual void check_launch(const char*) {}

 private:
  friend class Device;  // gives a new stream its faults
  void count(const OpInfo& op);
  void fail_copy(const char* name);
  static QueuedOp queued(const OpInfo& op, DataRanges ranges, std::function<void(const HostContext&)> body);

  StreamTotals totals_;
  FaultPlan* faults_ = nullptr;
};

}  // namespace sluice

// SLUICE_CUDA_OP(cuda::rms_norm, x, rows, y): calls cuda::rms_norm(context, x, rows, y), which queues the
// kernel.
#if SLUICE_CUDA
#define SLUICE_CUDA_OP(function, ...) \
  [=](const ::sluice::CudaContext& cuda_context) { function(cuda_context __VA_OPT__(, ) __VA_ARGS__); }
#else
#define SLUICE_CUDA_OP(function, ...) ::sluice::no_cuda(__VA_ARGS__)
#endif
