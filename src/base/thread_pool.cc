// Workers wait for a generation number to move, then take pieces until none is left.
#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>

#include "base/error.h"

namespace sluice {

int usable_cores() {
  int cores = 1;
  cpu_set_t mask;
  if (::sched_getaffinity(0, sizeof mask, &mask) == 0) cores = std::max(1, CPU_COUNT(&mask));
  // Control group v2: "max 100000" or "150000 100000" (microseconds of quota and period).
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (file >> quota >> period && quota != "max" && period > 0) {
    cores = std::clamp(static_cast<int>(std::stod(quota) / period + 0.5), 1, cores);
  }
  return cores;
}

ThreadPool::ThreadPool(int threads) {
  SLUICE_CHECK(threads >= 0);
  const int total = threads == 0 ? usable_cores() : threads;
  for (int i = 1; i < total; ++i) workers_.emplace_back([this] { work(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  start_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::parallel_for(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  SLUICE_CHECK(grain >= 1);
  if (n <= 0) return;
  if (workers_.empty() || n <= grain) return body(0, n);
  {
    const std::lock_guard lock(mutex_);
    // Four pieces a thread even out unequal ones without a queue.
    const int64_t pieces = static_cast<int64_t>(threads()) * 4;
    body_ = &body;
    n_ = n;
    piece_ = std::max(grain, (n + pieces - 1) / pieces);
    next_ = 0;
    failure_ = nullptr;
    ++generation_;
  }
  start_.notify_all();
  run_pieces();
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [this] { return running_ == 0; });
  body_ = nullptr;
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadPool::run_pieces() {
  std::unique_lock lock(mutex_);
  while (body_ != nullptr && next_ < n_) {
    const int64_t begin = next_;
    const int64_t end = next_ = std::min(n_, next_ + piece_);
    const auto* body = body_;
    ++running_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      (*body)(begin, end);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure && !failure_) failure_ = failure;
    if (--running_ == 0 && next_ >= n_) finished_.notify_all();
  }
}

void ThreadPool::work() {
  uint64_t seen = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      start_.wait(lock, [&] { return stopping_ || generation_ != seen; });
      if (stopping_) return;
      seen = generation_;
    }
    run_pieces();
  }
}

}  // namespace sluice
