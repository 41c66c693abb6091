// What failed on another thread than the one that waits for it.
#pragma once

#include <exception>
#include <mutex>
#include <utility>

namespace sluice {

/// The first failure of work that ran beside the host, until a host wait takes it.
class HostFailure {
 public:
  void keep(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
  }
  void rethrow() {
    std::exception_ptr failure;
    {
      const std::lock_guard lock(mutex_);
      failure = std::exchange(failure_, nullptr);
    }
    if (failure) std::rethrow_exception(failure);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace sluice
