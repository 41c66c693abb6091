// The host backend for proofs: nothing runs until a scheduler picks which stream's head goes next, and every
// pair of accesses without an order is reported.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/explored/fences.h"
#include "device/explored/options.h"
#include "device/explored/violation.h"

namespace sluice {

class Explorer;

/// To be used by one host thread. Operations that are still queued when it goes are never run. New memory is
/// filled with 0x7f, so that nobody leans on zeroes.
class ExploredDevice final : public Device {
 public:
  explicit ExploredDevice(const ExploreOptions& options);
  ~ExploredDevice() override;

  Backend backend() const override { return Backend::kHost; }
  std::unique_ptr<Event> make_event(std::string name) override;
  void wait(const Event& event, std::string_view why) override;
  void wait(Stream& stream, std::string_view why) override;
  bool done(const Event& event) override;
  void host_reads(ByteRange range, const char* what) override;
  void host_writes(ByteRange range, const char* what) override;
  double now_us() const override { return 0; }

  /// Takes a fence out, to prove that it is needed: from now on its `nth` use (1 is the first use of all), or
  /// each one, does nothing. `stream` is "host" for what the host does; the target of a host wait for a
  /// stream is the stream's name.
  void drop(FenceKind kind, std::string stream, std::string target, int64_t nth = FenceLog::kEvery);
  /// The fences that were used so far, whether they did something or were dropped.
  std::span<const Fence> fences() const;

  /// Runs what is queued; for the host it orders nothing. Throws what an operation threw.
  void drain();
  /// The scenario found a wrong result. What is queued runs first: a race explains more than wrong bytes.
  void fail(std::string message);
  /// The scenario ended with an exception: the same, without running anything.
  void note_exception(const std::string& what);
  const std::vector<Violation>& violations() const;
  /// All pieces that were started so far: "stream: 'operation' 1/2".
  const std::vector<std::string>& history() const;
  const Explorer& explorer() const { return *explorer_; }

 protected:
  Buffer allocate_memory(size_t bytes, std::string_view purpose, MemoryKind kind) override;
  std::unique_ptr<ReservedMemory> reserve_memory(size_t most_bytes, std::string purpose) override;
  std::unique_ptr<Stream> new_stream(std::string name, Priority priority) override;

 private:
  std::shared_ptr<Explorer> explorer_;
};

inline std::unique_ptr<ExploredDevice> make_explored_device(const ExploreOptions& options = {}) {
  return std::make_unique<ExploredDevice>(options);
}

}  // namespace sluice
