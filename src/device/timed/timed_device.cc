// The device interface on top of the simulated queues.
#include "device/timed/timed_device.h"

#include <utility>

#include "device/mapped_memory.h"
#include "device/timed/timed_queues.h"

namespace sluice {
namespace {

class TimedEvent final : public Event {
 public:
  std::shared_ptr<TimedQueues::Record> latest;
};

const TimedEvent& timed(const Event& event) { return static_cast<const TimedEvent&>(event); }

class TimedStream final : public Stream {
 public:
  TimedStream(std::shared_ptr<TimedQueues> queues, std::string name, Priority priority)
      : queues_(std::move(queues)), lane_(queues_->add_lane(std::move(name), priority)) {}
  Backend backend() const override { return Backend::kHost; }
  void record(Event& event) override { static_cast<TimedEvent&>(event).latest = queues_->record(lane_); }
  void wait(const Event& event) override { queues_->stream_wait(lane_, timed(event).latest); }

 protected:
  const HostContext* inline_context() const override { return nullptr; }
  void enqueue(QueuedOp op) override { queues_->enqueue(lane_, std::move(op)); }

 private:
  std::shared_ptr<TimedQueues> queues_;
  size_t lane_;
};

}  // namespace

TimedDevice::TimedDevice(TimedOptions options) : queues_(std::make_shared<TimedQueues>(std::move(options))) {}
TimedDevice::~TimedDevice() = default;

std::unique_ptr<Event> TimedDevice::make_event(std::string) { return std::make_unique<TimedEvent>(); }

void TimedDevice::wait(const Event& event, std::string_view why) {
  count_wait(why);
  queues_->host_wait(timed(event).latest);
}

void TimedDevice::wait(Stream& stream, std::string_view why) {
  TimedEvent end;
  stream.record(end);
  wait(end, why);
}

bool TimedDevice::done(const Event& event) { return queues_->done(timed(event).latest); }

std::optional<double> TimedDevice::elapsed_us(const Event& from, const Event& to) const {
  const auto &first = timed(from).latest, &last = timed(to).latest;
  if (first == nullptr || last == nullptr || !first->ran || !last->ran) return std::nullopt;
  return last->at_us - first->at_us;
}

double TimedDevice::now_us() const { return queues_->now_us(); }
void TimedDevice::advance_host(double us) { queues_->advance_host(us); }
TimedReport TimedDevice::report() const { return queues_->report(); }
const std::vector<TimelineSpan>& TimedDevice::timeline() const { return queues_->timeline(); }

Buffer TimedDevice::allocate_memory(size_t bytes, std::string_view purpose, MemoryKind kind) {
  auto memory = std::make_shared<Buffer>(map_memory(bytes, purpose));
  void* data = memory->data();
  queues_->memory().add(data, bytes, purpose, kind);
  return Buffer(data, bytes,
                [queues = queues_, memory](void* freed, size_t) { queues->memory().remove(freed); });
}

std::unique_ptr<ReservedMemory> TimedDevice::reserve_memory(size_t most_bytes, std::string purpose) {
  return reserve_mapped(most_bytes, std::move(purpose),
                        [queues = queues_](ReservedMemory& memory, size_t before, size_t after) {
                          if (after == 0) {
                            queues->memory().remove(memory.data());
                          } else if (before == 0) {
                            queues->memory().add(memory.data(), after, memory.purpose(), MemoryKind::kDevice);
                          } else {
                            queues->memory().resize(memory.data(), after);
                          }
                        });
}

std::unique_ptr<Stream> TimedDevice::new_stream(std::string name, Priority priority) {
  return std::make_unique<TimedStream>(queues_, std::move(name), priority);
}

}  // namespace sluice
