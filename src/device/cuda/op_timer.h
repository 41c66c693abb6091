// Times of single operations on CUDA streams, by events around each.
#pragma once

#include <cuda_runtime.h>

#include <string>
#include <vector>

#include "device/device.h"

namespace sluice {

/// Shared by the streams of a device. Not thread-safe.
class OpTimer {
 public:
  OpTimer() = default;
  OpTimer(const OpTimer&) = delete;
  OpTimer& operator=(const OpTimer&) = delete;
  ~OpTimer();

  bool on() const { return on_; }
  void set(bool on) { on_ = on; }
  void begin(cudaStream_t stream, const char* name);
  void end(cudaStream_t stream);
  /// Waits for the device.
  std::vector<OpTime> take();

 private:
  struct Span {
    std::string name;
    cudaEvent_t from, to;
  };
  cudaEvent_t event();

  bool on_ = false;
  std::vector<Span> spans_;
  std::vector<cudaEvent_t> spare_;
};

}  // namespace sluice
