// The device interface on top of the scheduler.
#include "device/explored/explored_device.h"

#include <cstring>

#include "base/error.h"
#include "device/explored/explorer.h"
#include "device/mapped_memory.h"

namespace sluice {
namespace {

class ExploredEvent final : public Event {
 public:
  explicit ExploredEvent(std::string event_name) : name(std::move(event_name)) {}
  const std::string name;
  std::shared_ptr<Record> latest;
};

const ExploredEvent& explored(const Event& event) { return static_cast<const ExploredEvent&>(event); }

class ExploredStream final : public Stream {
 public:
  ExploredStream(std::shared_ptr<Explorer> explorer, std::string name)
      : explorer_(std::move(explorer)), lane_(explorer_->add_lane(std::move(name))) {}
  Backend backend() const override { return Backend::kHost; }
  void record(Event& event) override {
    auto& target = static_cast<ExploredEvent&>(event);
    if (auto record = explorer_->record(lane_, target.name)) target.latest = std::move(record);
  }
  void wait(const Event& event) override {
    explorer_->stream_wait(lane_, explored(event).name, explored(event).latest);
  }
  size_t lane() const { return lane_; }

 protected:
  const HostContext* inline_context() const override { return nullptr; }
  void enqueue(QueuedOp op) override { explorer_->enqueue(lane_, std::move(op)); }

 private:
  std::shared_ptr<Explorer> explorer_;
  size_t lane_;
};

}  // namespace

ExploredDevice::ExploredDevice(const ExploreOptions& options)
    : explorer_(std::make_shared<Explorer>(options)) {}
ExploredDevice::~ExploredDevice() = default;

std::unique_ptr<Event> ExploredDevice::make_event(std::string name) {
  return std::make_unique<ExploredEvent>(std::move(name));
}

void ExploredDevice::wait(const Event& event, std::string_view why) {
  count_wait(why);
  explorer_->host_wait(explored(event).name, explored(event).latest);
}

void ExploredDevice::wait(Stream& stream, std::string_view why) {
  count_wait(why);
  explorer_->host_wait(static_cast<ExploredStream&>(stream).lane());
}

bool ExploredDevice::done(const Event& event) {
  return explorer_->done(explored(event).name, explored(event).latest);
}

void ExploredDevice::host_reads(ByteRange range, const char* what) {
  explorer_->host_access(range, what, false);
}
void ExploredDevice::host_writes(ByteRange range, const char* what) {
  explorer_->host_access(range, what, true);
}

void ExploredDevice::drop(FenceKind kind, std::string stream, std::string target, int64_t nth) {
  explorer_->fences().drop(kind, std::move(stream), std::move(target), nth);
}
std::span<const Fence> ExploredDevice::fences() const { return explorer_->fences().fences(); }

void ExploredDevice::drain() { explorer_->drain(); }
void ExploredDevice::fail(std::string message) {
  drain();
  explorer_->violate(ViolationKind::kWrongResult, std::move(message));
}
void ExploredDevice::note_exception(const std::string& what) {
  explorer_->violate(ViolationKind::kWrongResult, "it ended with: " + what);
}
const std::vector<Violation>& ExploredDevice::violations() const { return explorer_->violations(); }
const std::vector<std::string>& ExploredDevice::history() const { return explorer_->history(); }

Buffer ExploredDevice::allocate_memory(size_t bytes, std::string_view purpose, MemoryKind kind) {
  Buffer memory = map_memory(bytes, purpose);
  void* data = memory.data();
  std::memset(data, std::to_integer<int>(kFreshByte), bytes);
  explorer_->add_memory(data, bytes, purpose, kind);
  // A buffer that a queued operation needs is kept with the explorer; a violation tells of it.
  auto kept = std::make_shared<Buffer>(std::move(memory));
  return Buffer(data, bytes, [explorer = explorer_, kept](void* freed, size_t freed_bytes) {
    if (!explorer->remove_memory(freed, freed_bytes)) explorer->keep(kept);
  });
}

// Pages that go are kept and filled like new ones, as a write of the host: whoever still uses them is found.
std::unique_ptr<ReservedMemory> ExploredDevice::reserve_memory(size_t most_bytes, std::string purpose) {
  return reserve_mapped(
      most_bytes, std::move(purpose),
      [explorer = explorer_](ReservedMemory& memory, size_t before, size_t after) {
        explorer->resize_memory(memory, before, after);
      },
      true);
}

std::unique_ptr<Stream> ExploredDevice::new_stream(std::string name, Priority) {
  return std::make_unique<ExploredStream>(explorer_, std::move(name));
}

}  // namespace sluice
