// A fixed set of threads that split index ranges.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace sluice {

/// Splits [0, n) over a fixed set of threads; the caller is one of them. Which thread runs which piece never
/// shows in a result: pieces depend on n and grain alone, and each index is computed by one call.
class ThreadPool {
 public:
  /// `threads` >= 1 includes the caller; 0 means one for each core that this process may use.
  explicit ThreadPool(int threads = 0);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(begin, end) for pieces of at least `grain` indices (the last may be shorter). Returns when
  /// all are done. Not to be called from inside a body. An exception of a body is rethrown here (the first
  /// one).
  void parallel_for(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t)>& body);

 private:
  void work();
  void run_pieces();

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable start_, finished_;
  const std::function<void(int64_t, int64_t)>* body_ = nullptr;
  int64_t n_ = 0, piece_ = 0, next_ = 0;
  int running_ = 0;
  uint64_t generation_ = 0;
  bool stopping_ = false;
  std::exception_ptr failure_;
};

/// Cores that this process may run on (affinity mask and control-group quota), at least 1.
int usable_cores();

}  // namespace sluice
