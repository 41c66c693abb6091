// Streams: ordered queues of operations. Kernels, copies and waits are written against this interface alone.
//
// Each operation declares the byte ranges that it reads and writes, and its arithmetic. The declarations cost
// one line an operation; they feed the byte counters now, and let other forms of the host backend order,
// check and price operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>

namespace sluice {

class ThreadPool;

enum class Backend { kHost };

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

/// What an operation is. The lists live as long as the call that gets them.
struct OpInfo {
  const char* name = "";
  std::initializer_list<ByteRange> reads;
  std::initializer_list<ByteRange> writes;
  uint64_t flops = 0;
};

/// What a kernel's host version may use while it runs.
struct HostContext {
  ThreadPool& pool;
};

/// Totals of one stream since it was made.
struct StreamTotals {
  uint64_t launches = 0, copies = 0;
  uint64_t read_bytes = 0, written_bytes = 0, copied_bytes = 0;
  uint64_t flops = 0;
};

/// An ordered queue. Operations of one stream run in the order of their calls; the caller may not assume that
/// an operation has run before synchronize() returns. Not to be used by two threads at once.
class Stream {
 public:
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  virtual Backend backend() const = 0;

  /// Runs `body(const HostContext&)` in order. Pointers that it uses must stay valid until the operation has
  /// run.
  template <class Body>
  void launch(const OpInfo& op, Body&& body) {
    count(op);
    std::forward<Body>(body)(inline_context());
  }

  /// Copies `bytes` from `source` to `target` in order; the ranges do not overlap.
  void copy(const char* name, void* target, const void* source, size_t bytes);

  /// Returns when everything queued has run.
  virtual void synchronize() = 0;

  const StreamTotals& totals() const { return totals_; }

 protected:
  Stream() = default;
  virtual const HostContext& inline_context() const = 0;

 private:
  void count(const OpInfo& op);

  StreamTotals totals_;
};

}  // namespace sluice
