// The two devices that GPU tests compare, and transfers between them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "device/cuda/cuda_device.h"
#include "device/device.h"

namespace sluice::testing {

/// One GPU for all tests: opening it takes a second.
inline Device& gpu() {
  static const std::unique_ptr<Device> device = make_cuda_device({});
  return *device;
}

/// An array on the GPU.
template <class T>
class GpuArray {
 public:
  GpuArray(Stream& stream, const std::vector<T>& values)
      : stream_(stream),
        count_(values.size()),
        buffer_(gpu().allocate_array<T>(static_cast<int64_t>(count_), "test")) {
    write(values);
  }
  void write(const std::vector<T>& values) {
    stream_.copy("test input", buffer_.data(), values.data(), count_ * sizeof(T));
    gpu().wait(stream_, "test");
  }
  std::vector<T> read() const {
    std::vector<T> values(count_);
    stream_.copy("test output", values.data(), buffer_.data(), count_ * sizeof(T));
    gpu().wait(stream_, "test");
    return values;
  }
  T* data() const { return buffer_.template as<T>(); }

 private:
  Stream& stream_;
  size_t count_;
  Buffer buffer_;
};

}  // namespace sluice::testing
