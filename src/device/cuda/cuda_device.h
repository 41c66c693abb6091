// The CUDA backend: a GPU behind the same interface as the host backend.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "device/device.h"

namespace sluice {

struct CudaOptions {
  int ordinal = 0;             // which of the visible GPUs
  size_t most_bytes = 0;       // device memory that may be used; 0: all that is free
  bool batched_copies = true;  // off: copies of a batch are queued one by one, for comparison
};

/// What a GPU is.
struct CudaDeviceInfo {
  std::string name;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  size_t total_bytes = 0, free_bytes = 0;
  int numa_node = -1;
  std::string link;  // "PCI 0000:01:00.0"
};
/// Throws Error kUnsupported where there is no usable GPU or driver, kInvalidArgument for an ordinal beyond
/// the last.
CudaDeviceInfo cuda_device_info(int ordinal);
/// How many GPUs this process can use. Where it is 0 although a driver is loaded, `*refusal` (may be null)
/// says why.
int cuda_device_count(std::string* refusal = nullptr);

/// Opens a GPU and tests its copies. Throws as cuda_device_info, and Error kIo where a copy changes bytes.
/// `*fallback` (may be null) gets a line where the driver lacks something and a slower way is taken.
std::unique_ptr<Device> make_cuda_device(const CudaOptions& options, std::string* fallback = nullptr);

}  // namespace sluice
