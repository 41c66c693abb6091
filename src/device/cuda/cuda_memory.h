// Device memory, page-locked memory and address ranges of a CUDA device.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "device/device.h"

namespace sluice {

/// What a device may still give out, where a part of a large card acts as a small one.
class CudaMemoryCap {
 public:
  explicit CudaMemoryCap(size_t bytes) : left_(bytes) {}
  /// Throws Error kOutOfMemory that names `purpose`.
  void take(size_t bytes, std::string_view purpose);
  void give_back(size_t bytes) { left_ += bytes; }
  size_t left() const { return left_; }

 private:
  size_t left_;
};

/// 256-byte aligned. Throws Error kOutOfMemory.
Buffer allocate_cuda(std::shared_ptr<CudaMemoryCap> cap, size_t bytes, std::string_view purpose);
/// Page-locked host memory that the device reads by the same address. Throws Error kOutOfMemory.
Buffer allocate_pinned(size_t bytes, std::string_view purpose);
/// Physical memory comes and goes in whole chunks at the end of the backed part.
std::unique_ptr<ReservedMemory> reserve_cuda(int ordinal, std::shared_ptr<CudaMemoryCap> cap,
                                             size_t most_bytes, std::string purpose);

}  // namespace sluice
