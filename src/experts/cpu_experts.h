// Experts that the CPU computes from the host rows while the link brings others.
//
// One block of pinned memory holds the input and the output of one call, and three sequence numbers hand it
// to and fro. No lock and no call of the system lies between them, so the same block serves a GPU whose
// kernels write and poll pinned memory.
// 1. calls:  post operations that have run. Written by the stream.
// 2. posted: the last call that handed over work. Written by the stream (release), after the input.
// 3. done:   the last call that was answered. Written by the workers (release), after the output.
// While posted != done the block is the workers'; else it is the stream's, which has one call under way: take
// of a call stands before post of the next. A post that finds the block with the workers (take gave up
// waiting) leaves it alone, and the step fails.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/thread_pool.h"
#include "device/device.h"
#include "experts/executor.h"
#include "experts/host_rows.h"
#include "experts/settings.h"

namespace sluice {

/// What the workers did, since the start.
struct CpuTotals {
  uint64_t calls = 0, experts = 0, rows = 0;  // calls with work; experts of them; (row, rank) pairs
  int64_t busy_ns = 0;                        // of the workers, with all of them together
  int64_t waited_ns = 0;                      // the stream waited for them
};

class CpuExperts {
 public:
  /// `rows` outlive it. Starts its threads, unless settings.inline_work. Throws Error kOutOfMemory.
  CpuExperts(Device& device, std::span<const LayerRows> rows, const ExpertShape& shape,
             const CpuSettings& settings, int64_t max_rows);
  /// Ends the threads after the call that they work on. Nothing that post() or take() queued may still run.
  ~CpuExperts();
  CpuExperts(const CpuExperts&) = delete;
  CpuExperts& operator=(const CpuExperts&) = delete;

  int threads() const { return pool_.threads(); }
  /// Milliseconds of one expert with one row: the workers compute top-k of them a few times, now. Only while
  /// nothing is under way.
  double measure_ms();

  /// Between these calls the workers are awake, since steps are queued.
  void begin_step() { set_awake(true); }
  void end_step() { set_awake(false); }

  /// Hands over the experts cpu_ids [rows, k] (-1: not for the CPU) of the input's layer.
  void post(Stream& compute, const MoeInput& input, const int32_t* cpu_ids);
  /// Waits for the workers' answer and puts it into the outputs of these (row, rank) pairs. The others, and
  /// after a failure all, stay as they are.
  void take(Stream& compute, const MoeInput& input, const int32_t* cpu_ids);
  /// At the end of a forward, which may have been given up between the two: waits for an answer that nobody
  /// has taken, so that the next call finds the block free.
  void drop(Stream& compute);

  // After the host has waited for the stream:

  /// Throws the first failure since the last call: kIo, with layer and experts. The next call may work.
  void throw_if_failed();
  /// Whether the workers have answered everything, so that new work may be given to them.
  bool answered() const;
  /// As far as the workers have answered.
  CpuTotals totals();

 private:
  enum class Fault : int32_t { kNone, kSilent, kThrew, kBusy };
  /// The first failure, as an operation notes it.
  struct Failure {
    Fault fault = Fault::kNone;
    int32_t layer = 0, experts = 0;
    std::array<int32_t, 8> ids{};  // the first of the experts, as far as they fit
  };
  struct Shared {
    alignas(64) uint64_t calls, posted;
    alignas(64) uint64_t done;
    alignas(64) int64_t layer, rows, k;  // of the posted call
    int32_t threw;                       // the answer is a failure: its text is in failure_text_
    CpuTotals totals;
    Failure failure;
  };

  void set_awake(bool awake);
  void serve();
  bool may_get_work();
  void answer();
  void compute(int64_t layer, int64_t rows, int64_t k);
  bool wait_for_answer();
  void declare_answer(RangeSink& sink, int64_t layer, const int32_t* ids, int64_t rows, int64_t k) const;
  void note(Fault fault, int64_t layer, const int32_t* cpu_ids, int64_t n);
  std::string describe(const Failure& failure) const;

  const std::span<const LayerRows> layers_;
  const CpuSettings settings_;
  const int64_t top_k_;
  ThreadPool pool_;
  Buffer shared_memory_, x_, ids_, outputs_;
  Shared* shared_;
  std::vector<float> activations_;  // the workers' scratch [max_rows * k, intermediate]
  std::vector<int32_t> identity_;   // expert e lies in row e
  std::string failure_text_;        // of the first call that threw; written by the workers before `done`
  CpuTotals totals_;                // when they were last asked for

  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<uint64_t> queued_{0};  // post operations that the host has queued
  bool untaken_ = false;             // the last of them has no take behind it
  std::atomic<bool> awake_{false}, stopping_{false};
  std::thread thread_;  // last: it uses the others
};

}  // namespace sluice
