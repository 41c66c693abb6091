// The scheduler behind an explored device: queues, clocks and checks.
#pragma once

#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "device/explored/chooser.h"
#include "device/explored/fences.h"
#include "device/explored/race_checker.h"
#include "device/explored/torn.h"
#include "device/explored/vector_clock.h"
#include "device/explored/violation.h"
#include "device/memory_map.h"

namespace sluice {

/// What new memory is filled with: huge as a number and far out of range as an index.
inline constexpr std::byte kFreshByte{0x7f};

/// One record of an event; waits bind to it.
struct Record {
  bool ran = false;
  VectorClock clock;
};

/// Belongs to one host thread. Lanes are streams, numbered from 1; they outlive the handles of their streams.
class Explorer {
 public:
  explicit Explorer(const ExploreOptions& options);

  size_t add_lane(std::string name);
  void enqueue(size_t lane, QueuedOp op);
  /// Returns null where the record is dropped.
  std::shared_ptr<Record> record(size_t lane, const std::string& event);
  void stream_wait(size_t lane, const std::string& event, std::shared_ptr<Record> record);

  void host_access(ByteRange range, const char* what, bool writes);
  bool done(const std::string& event, const std::shared_ptr<Record>& record);
  void host_wait(const std::string& event, const std::shared_ptr<Record>& record);
  void host_wait(size_t lane);
  /// Runs everything that is queued, without ordering anything for the host.
  void drain();

  void add_memory(void* data, size_t bytes, std::string_view purpose, MemoryKind kind);
  /// Whether nothing queued needs the memory; if not, that is a violation, and the caller keeps it.
  bool remove_memory(void* data, size_t bytes);
  void resize_memory(ReservedMemory& memory, size_t before, size_t after);
  void keep(std::shared_ptr<void> memory) { kept_.push_back(std::move(memory)); }

  void violate(ViolationKind kind, std::string message);
  const std::vector<Violation>& violations() const { return violations_; }
  FenceLog& fences() { return fences_; }
  const Chooser& chooser() const { return *chooser_; }
  const std::vector<std::string>& history() const { return history_; }
  int64_t pieces() const { return pieces_; }

 private:
  struct Item {
    enum class Kind { kOp, kRecord, kWait } kind = Kind::kOp;
    QueuedOp op;
    std::shared_ptr<Record> record;
    size_t fence = 0;  // of a wait
    VectorClock host;  // the host's clock at the call
  };
  // The rest of an operation whose first piece has run.
  struct Started {
    std::vector<CopyEntry> entries;
    std::vector<HeldWrite> held;
  };
  struct Lane {
    std::string name;
    VectorClock clock;
    std::deque<Item> queue;
    std::optional<Started> started;  // the front of the queue
  };
  struct Ranges;

  bool runnable(size_t lane) const;
  void consider_running(bool access);
  template <class Reached>
  void run_until(const Reached& reached, const std::string& what);
  void run_piece(size_t lane);
  void start(size_t lane);
  std::optional<Started> run_first_piece(const QueuedOp& op, const Ranges& ranges);
  std::optional<Started> run_first_part_of_copy(const QueuedOp& op);
  void run_body(const QueuedOp& op, const Ranges& ranges);
  /// Whether nothing has written any byte of the range.
  bool is_fresh(ByteRange range) const;
  void check_written(const Lane& lane, const QueuedOp& op);
  void check(const Lane& lane, size_t thread, const QueuedOp& op, const Ranges& ranges);
  void report(const std::vector<Race>& races);
  /// Passes the records and waits at the heads of all queues as far as they go.
  void settle();
  void pass(Lane& lane, const Item& item);
  void note_piece(const std::string& lane, const QueuedOp& op, const char* piece);
  void end_host_wait(const VectorClock& clock, size_t fence);
  bool tears(const Ranges& ranges);

  ExploreOptions options_;
  std::unique_ptr<Chooser> chooser_;
  ThreadPool pool_{1};
  HostContext context_{pool_};
  VectorClock host_;
  std::vector<Lane> lanes_;  // [0] is the host's place and stays empty
  MemoryMap memory_;
  std::vector<std::shared_ptr<void>> kept_;
  RaceChecker races_;
  FenceLog fences_;
  std::vector<Violation> violations_;
  std::vector<std::string> history_;
  std::exception_ptr failure_;  // of an operation, for the next host wait
  int64_t pieces_ = 0;
  bool stopped_ = false;
};

}  // namespace sluice
