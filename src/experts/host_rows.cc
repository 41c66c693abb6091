// Reserve, fill, then lock.
#include "experts/host_rows.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/host_memory.h"
#include "device/mapped_memory.h"

namespace sluice {
namespace {

/// Whether the pages of a layer are locked; shared by the locker and by the buffer that unlocks them.
using LockState = std::shared_ptr<std::atomic<bool>>;

Buffer reserve_rows(Device& device, size_t bytes, const LockState& locked) {
  auto pages = std::make_shared<Buffer>(map_memory(bytes, "expert rows"));
  return Buffer(pages->data(), bytes, [&device, pages, locked](void* data, size_t size) {
    if (locked->load()) device.unlock_pages({data, size});
  });
}

bool wants_locks(LockMode mode, const Device& device) {
  return mode == LockMode::kOn || mode == LockMode::kRequired ||
         (mode == LockMode::kAuto && device.needs_locked_pages());
}

}  // namespace

void check_host_memory(uint64_t bytes, const HostRowOptions& options) {
  HostMemory memory = free_host_memory();
  if (options.memory_limit > 0 && options.memory_limit < memory.free_bytes) {
    memory = {options.memory_limit, "--host-memory-limit"};
  }
  if (bytes <= memory.free_bytes) return;
  throw Error(ErrorCode::kOutOfMemory,
              "host memory is too small: the line \"expert rows\" of the plan needs " + format_bytes(bytes) +
                  ", " + format_bytes(memory.free_bytes) + " are free (" + memory.limit +
                  "); free memory, raise the limit, or quantise the experts (sluice convert --format nvfp4)");
}

/// Locks ranges in the order in which they come.
class HostRowReader::Locker {
 public:
  explicit Locker(Device& device) : device_(device), thread_([this] { work(); }) {}
  ~Locker() { stop(); }

  void add(int64_t layer, ByteRange range, LockState state) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back({layer, range, std::move(state)});
    }
    changed_.notify_one();
  }
  /// The result of each layer, once all are through. Throws what the device threw.
  const std::map<int64_t, LockResult>& finish() {
    stop();
    if (failure_) std::rethrow_exception(failure_);
    return results_;
  }

 private:
  struct Job {
    int64_t layer;
    ByteRange range;
    LockState state;
  };

  void stop() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  void work() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const Job job = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      try {
        const LockResult result =
            device_.lock_pages(job.range, "expert rows of MoE layer " + std::to_string(job.layer));
        job.state->store(static_cast<bool>(result));
        results_.emplace(job.layer, result);
      } catch (...) {
        if (!failure_) failure_ = std::current_exception();
      }
    }
  }

  Device& device_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> waiting_;
  bool stopping_ = false;
  std::map<int64_t, LockResult> results_;  // the thread's until it has ended
  std::exception_ptr failure_;
  std::thread thread_;
};

HostRowReader::HostRowReader(Device& device, ThreadPool& pool, const HostRowOptions& options,
                             std::function<void(size_t)> progress)
    : device_(device),
      pool_(pool),
      options_(options),
      progress_(std::move(progress)),
      near_node_(device.numa_node() >= 0 ? device.numa_node() : current_numa_node()) {
  if (wants_locks(options.lock, device)) locker_ = std::make_unique<Locker>(device);
}

HostRowReader::~HostRowReader() = default;

LayerRows HostRowReader::read(int64_t number, const StoredExperts& stored) {
  LayerRows layer;
  layer.layout = stored.layout();
  layer.experts = stored.experts();
  const size_t row_bytes = layer.layout.row_bytes;
  const auto locked = std::make_shared<std::atomic<bool>>(false);
  layer.rows = reserve_rows(device_, static_cast<size_t>(layer.experts) * row_bytes, locked);
  // Before the first touch, which is what places a page.
  const std::string refusal = place_pages(layer.rows.data(), layer.rows.bytes(), options_.numa, near_node_);
  if (report_.numa_refusal.empty()) report_.numa_refusal = refusal;
  layer.scalars.resize(static_cast<size_t>(layer.experts) * kScalarsPerExpert);
  pool_.parallel_for(layer.experts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t e = begin; e < end; ++e) {
      const std::span<std::byte> row(layer.rows.as<std::byte>() + static_cast<size_t>(e) * row_bytes,
                                     row_bytes);
      stored.read_row(e, row,
                      std::span<float, kScalarsPerExpert>(
                          &layer.scalars[static_cast<size_t>(e) * kScalarsPerExpert], kScalarsPerExpert));
      if (progress_) progress_(row_bytes);
    }
  });
  if (locker_) locker_->add(number, {layer.rows.data(), layer.rows.bytes()}, locked);
  return layer;
}

HostRowReport HostRowReader::finish(std::span<LayerRows> layers) {
  std::map<int64_t, LockResult> locks;
  if (locker_) {
    locks = locker_->finish();
    SLUICE_CHECK(locks.size() == layers.size());
  }
  for (size_t l = 0; l < layers.size(); ++l) {
    const LockResult lock = locker_ ? locks.at(static_cast<int64_t>(l)) : LockResult();
    report_.bytes += layers[l].bytes();
    add_page_share(layers[l].rows.data(), layers[l].bytes(), report_.share);
    if (lock) report_.locked_bytes += layers[l].bytes();
    if (lock || (!locker_ && !device_.needs_locked_pages())) continue;
    layers[l].staged = true;
    report_.staged_layers.push_back(static_cast<int64_t>(l));
    if (report_.refusal.empty()) report_.refusal = locker_ ? lock.refusal : "page-locking is off";
  }
  if (options_.lock == LockMode::kRequired && !report_.staged_layers.empty()) {
    throw Error(ErrorCode::kOutOfMemory, "--lock-host-rows required: " + report_.refusal);
  }
  return std::move(report_);
}

}  // namespace sluice
