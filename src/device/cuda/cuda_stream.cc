// Order, copies and host work of a CUDA stream.
#include "device/cuda/cuda_stream.h"

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace sluice {
namespace {

// One entry of up to 16 KiB beside a large one makes the whole batch block its caller; from 64 KiB on none
// does.
constexpr size_t kLeastBatchedBytes = size_t{64} << 10;

struct HostWork {
  std::function<void(const HostContext&)> body;
  std::shared_ptr<HostFailure> failure;
};

void CUDART_CB run_host_work(void* data) {
  const std::unique_ptr<HostWork> work(static_cast<HostWork*>(data));
  ThreadPool pool(1);
  try {
    work->body(HostContext{pool});
  } catch (...) {
    work->failure->keep(std::current_exception());
  }
}

void copy_one(cudaStream_t stream, const char* name, const CopyEntry& entry) {
  cuda_check(cudaMemcpyAsync(entry.target, entry.source, entry.bytes, cudaMemcpyDefault, stream), name);
}

}  // namespace

CudaEvent::CudaEvent() { cuda_check(cudaEventCreate(&event_), "making an event"); }

CudaGraph::CudaGraph(cudaGraph_t graph, const StreamTotals& totals) : graph_(graph), totals_(totals) {
  size_t nodes = 0;
  cudaError_t result = cudaGraphGetNodes(graph, nullptr, &nodes);
  if (result == cudaSuccess) result = cudaGraphInstantiate(&executable_, graph, 0);
  if (result != cudaSuccess) cudaGraphDestroy(graph);
  cuda_check(result, "making a graph");
  operations_ = static_cast<int64_t>(nodes);
}

CudaGraph::~CudaGraph() {
  cudaGraphExecDestroy(executable_);
  cudaGraphDestroy(graph_);
}

CudaStream::CudaStream(std::string name, int priority, const CudaContext& device, bool batches,
                       std::shared_ptr<HostFailure> failure, std::shared_ptr<CaptureState> captures,
                       std::shared_ptr<OpTimer> timer)
    : name_(std::move(name)),
      batches_(batches),
      failure_(std::move(failure)),
      captures_(std::move(captures)),
      timer_(std::move(timer)) {
  cudaStream_t stream = nullptr;
  cuda_check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority), "making a stream");
  context_ = device;
  context_.stream = stream;
}

CudaStream::~CudaStream() {
  cudaStreamSynchronize(context_.stream);
  cudaStreamDestroy(context_.stream);
}

void CudaStream::record(Event& event) {
  auto& target = static_cast<CudaEvent&>(event);
  cuda_check(cudaEventRecord(target.get(), context_.stream), name_.c_str());
  target.mark_recorded(captures_->now);
}

void CudaStream::wait(const Event& event) {
  const auto& source = static_cast<const CudaEvent&>(event);
  if (!source.recorded(captures_->now)) return;
  cuda_check(cudaStreamWaitEvent(context_.stream, source.get(), 0), name_.c_str());
}

std::unique_ptr<Graph> CudaStream::capture(const std::function<void()>& queue) {
  SLUICE_CHECK_MSG(captures_->now == 0, "a graph inside a graph");
  if (timer_->on()) return nullptr;
  const StreamTotals before = totals();
  cuda_check(cudaStreamBeginCapture(context_.stream, cudaStreamCaptureModeThreadLocal), name_.c_str());
  captures_->now = ++captures_->last;
  std::exception_ptr failure;
  try {
    queue();
  } catch (...) {
    failure = std::current_exception();
  }
  captures_->now = 0;
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(context_.stream, &graph);
  const StreamTotals recorded = totals() - before;
  mutable_totals() = before;  // nothing has run
  if (failure) {
    if (graph != nullptr) cudaGraphDestroy(graph);
    cudaGetLastError();
    std::rethrow_exception(failure);
  }
  cuda_check(ended, "recording a graph");
  return std::make_unique<CudaGraph>(graph, recorded);
}

void CudaStream::run(const Graph& graph) {
  const auto& source = static_cast<const CudaGraph&>(graph);
  cuda_check(cudaGraphLaunch(source.get(), context_.stream), name_.c_str());
  mutable_totals() += source.totals();
}

void CudaStream::copy_batched(cudaStream_t stream, std::span<const CopyEntry> entries) {
  std::vector<void*> targets;
  std::vector<const void*> sources;
  std::vector<size_t> sizes;
  for (const CopyEntry& entry : entries) {
    targets.push_back(entry.target);
    sources.push_back(entry.source);
    sizes.push_back(entry.bytes);
  }
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  size_t first = 0;
  cuda_check(cudaMemcpyBatchAsync(targets.data(), sources.data(), sizes.data(), sizes.size(), &attributes,
                                  &first, 1, stream),
             "batched copy");
}

void CudaStream::copy_entries(const QueuedOp& op) {
  std::vector<CopyEntry> large;
  for (const CopyEntry& entry : op.entries) {
    if (batches_ && op.entries.size() > 1 && entry.bytes >= kLeastBatchedBytes) {
      large.push_back(entry);
    } else {
      copy_one(context_.stream, op.name, entry);
    }
  }
  if (!large.empty()) copy_batched(context_.stream, large);
}

void CudaStream::run_on_host(QueuedOp op) {
  auto work = std::make_unique<HostWork>(HostWork{std::move(op.body), failure_});
  cuda_check(cudaLaunchHostFunc(context_.stream, run_host_work, work.get()), op.name);
  work.release();  // run_host_work owns it
}

void CudaStream::enqueue(QueuedOp op) {
  if (!op.body) {
    before_launch(op.name);
    copy_entries(op);
    return check_launch(op.name);
  }
  SLUICE_CHECK_MSG(op.on_host || op.is_copy,
                   std::string("the operation '") + op.name + "' has no CUDA version");
  run_on_host(std::move(op));
}

}  // namespace sluice
