// A link as slow as a real one, for measurements on the host backend.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>

#include "device/stream.h"

namespace sluice {

/// What is read from host memory, which is all memory that the device did not give out as its own, crosses at
/// `bytes_per_ms`.
class LinkPace {
 public:
  explicit LinkPace(double bytes_per_ms) : bytes_per_ms_(bytes_per_ms) {}
  void add_device(const void* data, size_t bytes) { device_[static_cast<const std::byte*>(data)] = bytes; }
  void remove_device(const void* data) { device_.erase(static_cast<const std::byte*>(data)); }

  bool crosses(const void* source) const;
  std::chrono::nanoseconds time_of(size_t bytes) const;

 private:
  double bytes_per_ms_;
  std::map<const std::byte*, size_t, std::greater<>> device_;  // by address, the highest first
};

/// One operation's way over the link: it ends when all that was added would have arrived. Does nothing
/// without a pace.
class LinkCrossing {
 public:
  explicit LinkCrossing(const LinkPace* pace) : pace_(pace) {
    if (pace_ != nullptr) start_ = std::chrono::steady_clock::now();
  }
  LinkCrossing(const LinkCrossing&) = delete;
  LinkCrossing& operator=(const LinkCrossing&) = delete;
  ~LinkCrossing();

  void add(const void* source, size_t bytes) {
    if (pace_ != nullptr && pace_->crosses(source)) bytes_ += bytes;
  }

 private:
  const LinkPace* pace_;
  std::chrono::steady_clock::time_point start_;
  size_t bytes_ = 0;
};

}  // namespace sluice
