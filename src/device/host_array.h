// Page-locked host memory that the device copies counters and results into without a wait.
#pragma once

#include <span>
#include <string_view>
#include <type_traits>

#include "device/device.h"

namespace sluice {

/// `n` values, zeroed. Lives until the copies that were queued to it have run.
template <class T>
class HostArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  HostArray() = default;
  HostArray(Device& device, size_t n, std::string_view purpose)
      : memory_(device.allocate(n * sizeof(T), purpose, MemoryKind::kPinned)), n_(n) {
    for (T& value : all()) value = T();
  }

  T* data() const { return memory_.template as<T>(); }
  size_t size() const { return n_; }
  size_t bytes() const { return n_ * sizeof(T); }
  std::span<T> all() const { return {data(), n_}; }
  T& operator[](size_t i) const { return data()[i]; }

 private:
  Buffer memory_;
  size_t n_ = 0;
};

}  // namespace sluice
