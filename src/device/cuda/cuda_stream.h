// Streams and events of a CUDA device.
#pragma once

#include <memory>
#include <string>

#include "base/thread_pool.h"
#include "device/cuda/cuda_check.h"
#include "device/cuda/op_timer.h"
#include "device/host_failure.h"
#include "device/stream.h"

namespace sluice {

/// Which recording of a graph goes on, of all streams of a device; 0: none.
struct CaptureState {
  uint64_t now = 0, last = 0;
};

class CudaEvent final : public Event {
 public:
  CudaEvent();
  ~CudaEvent() override { cudaEventDestroy(event_); }
  cudaEvent_t get() const { return event_; }
  void mark_recorded(uint64_t capture) { recorded_in_ = capture; }
  /// Whether the latest record was made in this recording of a graph, or outside of all (0).
  bool recorded(uint64_t capture = 0) const { return recorded_in_ == capture; }

 private:
  static constexpr uint64_t kNever = ~uint64_t{0};
  cudaEvent_t event_ = nullptr;
  uint64_t recorded_in_ = kNever;
};

class CudaGraph final : public Graph {
 public:
  /// Takes `graph` over.
  CudaGraph(cudaGraph_t graph, const StreamTotals& totals);
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  ~CudaGraph() override;
  int64_t operations() const override { return operations_; }
  cudaGraphExec_t get() const { return executable_; }
  const StreamTotals& totals() const { return totals_; }  // of the stream that captured it, each run

 private:
  cudaGraph_t graph_;
  cudaGraphExec_t executable_ = nullptr;
  int64_t operations_ = 0;
  StreamTotals totals_;
};

/// `device`: what kernels need to know of it; the stream is filled in. `batches`: whether the driver's
/// batched copy has passed its self-test.
class CudaStream final : public Stream {
 public:
  CudaStream(std::string name, int priority, const CudaContext& device, bool batches,
             std::shared_ptr<HostFailure> failure, std::shared_ptr<CaptureState> captures,
             std::shared_ptr<OpTimer> timer);
  /// Waits for what is queued: nothing may run in memory that goes next.
  ~CudaStream() override;

  Backend backend() const override { return Backend::kCuda; }
  void record(Event& event) override;
  void wait(const Event& event) override;
  std::unique_ptr<Graph> capture(const std::function<void()>& queue) override;
  void run(const Graph& graph) override;
  cudaStream_t get() const { return context_.stream; }

  /// Queues the copies as one batch. Throws Error kIo.
  static void copy_batched(cudaStream_t stream, std::span<const CopyEntry> entries);

 protected:
  const HostContext* inline_context() const override { return nullptr; }
  const CudaContext* cuda_context() const override { return &context_; }
  void before_launch(const char* name) override {
    if (timer_->on()) timer_->begin(context_.stream, name);
  }
  void check_launch(const char* name) override {
    cuda_check(cudaGetLastError(), name);
    if (timer_->on()) timer_->end(context_.stream);
  }
  void enqueue(QueuedOp op) override;

 private:
  void run_on_host(QueuedOp op);
  void copy_entries(const QueuedOp& op);

  std::string name_;
  CudaContext context_;
  bool batches_;
  std::shared_ptr<HostFailure> failure_;
  std::shared_ptr<CaptureState> captures_;
  std::shared_ptr<OpTimer> timer_;
};

}  // namespace sluice
