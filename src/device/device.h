// A device: where buffers are allocated and streams are made.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "device/stream.h"

namespace sluice {

/// Device memory. Move-only owner; freed with the object. 64-byte aligned, content undefined until written.
class Buffer {
 public:
  using Free = void (*)(void*, size_t);
  Buffer() = default;
  Buffer(void* data, size_t bytes, Free free) : data_(data), bytes_(bytes), free_(free) {}
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
  Free free_ = nullptr;
};

/// One device of one backend.
class Device {
 public:
  virtual ~Device() = default;
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual Backend backend() const = 0;
  /// Throws Error kOutOfMemory that names `purpose` and the bytes. Zero bytes give an empty buffer.
  virtual Buffer allocate(size_t bytes, std::string_view purpose) = 0;
  template <class T>
  Buffer allocate_array(int64_t count, std::string_view purpose) {
    return allocate(static_cast<size_t>(count) * sizeof(T), purpose);
  }
  virtual std::unique_ptr<Stream> make_stream() = 0;
  /// Bytes that allocate() has given out since the start.
  size_t allocated_bytes() const { return allocated_; }

 protected:
  size_t allocated_ = 0;
};

/// The host backend in its inline form: device memory is host memory, and an operation runs when it is
/// called, on the threads of one pool. `threads` 0 means all usable cores.
std::unique_ptr<Device> make_host_device(int threads = 0);

}  // namespace sluice
