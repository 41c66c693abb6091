// Queues with a worker each; an event's record is a latch.
#include "device/threaded/threaded_device.h"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/thread_pool.h"
#include "device/host_failure.h"
#include "device/mapped_memory.h"

namespace sluice {
namespace {

// One record of an event.
class Latch {
 public:
  void open() {
    // Under the lock: a waiter may destroy the latch as soon as it sees it open.
    const std::lock_guard lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [this] { return open_; });
  }
  bool is_open() {
    const std::lock_guard lock(mutex_);
    return open_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

class ThreadedEvent final : public Event {
 public:
  std::shared_ptr<Latch> latest;
};

class ThreadedStream final : public Stream {
 public:
  explicit ThreadedStream(std::shared_ptr<HostFailure> failure)
      : failure_(std::move(failure)), worker_([this] { work(); }) {}
  /// Runs what is queued first.
  ~ThreadedStream() override {
    push({});
    worker_.join();
  }

  Backend backend() const override { return Backend::kHost; }
  void record(Event& event) override {
    auto latch = std::make_shared<Latch>();
    static_cast<ThreadedEvent&>(event).latest = latch;
    push([latch](const HostContext&) { latch->open(); });
  }
  void wait(const Event& event) override {
    const auto latch = static_cast<const ThreadedEvent&>(event).latest;
    if (latch != nullptr) push([latch](const HostContext&) { latch->wait(); });
  }

 protected:
  const HostContext* inline_context() const override { return nullptr; }
  void enqueue(QueuedOp op) override {
    if (op.body) return push(std::move(op.body));
    push([entries = std::move(op.entries)](const HostContext&) {
      for (const CopyEntry& entry : entries) std::memcpy(entry.target, entry.source, entry.bytes);
    });
  }

 private:
  using Work = std::function<void(const HostContext&)>;  // empty: the end

  void push(Work item) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(item));
    }
    filled_.notify_one();
  }

  Work pop() {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [this] { return !queue_.empty(); });
    Work item = std::move(queue_.front());
    queue_.pop_front();
    return item;
  }

  void work() {
    ThreadPool pool(1);
    const HostContext context{pool};
    while (const Work item = pop()) {
      try {
        item(context);
      } catch (...) {
        failure_->keep(std::current_exception());
      }
    }
  }

  std::shared_ptr<HostFailure> failure_;
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<Work> queue_;
  std::thread worker_;  // last: it uses the others
};

class ThreadedDevice final : public Device {
 public:
  Backend backend() const override { return Backend::kHost; }
  std::unique_ptr<Event> make_event(std::string) override { return std::make_unique<ThreadedEvent>(); }
  void wait(const Event& event, std::string_view why) override {
    count_wait(why);
    const auto latch = static_cast<const ThreadedEvent&>(event).latest;
    if (latch != nullptr) latch->wait();
    failure_->rethrow();
  }
  void wait(Stream& stream, std::string_view why) override {
    ThreadedEvent end;
    stream.record(end);
    wait(end, why);
  }
  bool done(const Event& event) override {
    const auto latch = static_cast<const ThreadedEvent&>(event).latest;
    return latch == nullptr || latch->is_open();
  }

 protected:
  Buffer allocate_memory(size_t bytes, std::string_view purpose, MemoryKind) override {
    return map_memory(bytes, purpose);
  }
  std::unique_ptr<Stream> new_stream(std::string, Priority) override {
    return std::make_unique<ThreadedStream>(failure_);
  }

 private:
  std::shared_ptr<HostFailure> failure_ = std::make_shared<HostFailure>();
};

}  // namespace

std::unique_ptr<Device> make_threaded_device() { return std::make_unique<ThreadedDevice>(); }

}  // namespace sluice
