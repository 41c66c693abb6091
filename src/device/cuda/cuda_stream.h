// Streams and events of a CUDA device.
#pragma once

#include <memory>
#include <string>

#include "base/thread_pool.h"
#include "device/cuda/cuda_check.h"
#include "device/host_failure.h"
#include "device/stream.h"

namespace sluice {

class CudaEvent final : public Event {
 public:
  CudaEvent();
  ~CudaEvent() override { cudaEventDestroy(event_); }
  cudaEvent_t get() const { return event_; }
  void mark_recorded() { recorded_ = true; }
  bool recorded() const { return recorded_; }

 private:
  cudaEvent_t event_ = nullptr;
  bool recorded_ = false;
};

/// `batches`: whether the driver's batched copy has passed its self-test.
class CudaStream final : public Stream {
 public:
  CudaStream(std::string name, int priority, int multiprocessors, bool batches,
             std::shared_ptr<HostFailure> failure);
  /// Waits for what is queued: nothing may run in memory that goes next.
  ~CudaStream() override;

  Backend backend() const override { return Backend::kCuda; }
  void record(Event& event) override;
  void wait(const Event& event) override;
  cudaStream_t get() const { return context_.stream; }

  /// Queues the copies as one batch. Throws Error kIo.
  static void copy_batched(cudaStream_t stream, std::span<const CopyEntry> entries);

 protected:
  const HostContext* inline_context() const override { return nullptr; }
  const CudaContext* cuda_context() const override { return &context_; }
  void check_launch(const char* name) override { cuda_check(cudaGetLastError(), name); }
  void enqueue(QueuedOp op) override;

 private:
  void run_on_host(QueuedOp op);
  void copy_entries(const QueuedOp& op);

  std::string name_;
  CudaContext context_;
  bool batches_;
  std::shared_ptr<HostFailure> failure_;
};

}  // namespace sluice
