// A model's experts in slots: the executor that serves, for decode and for every form of prefill.
#pragma once

#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experts/audit.h"
#include "experts/cpu_control.h"
#include "experts/decode_path.h"
#include "experts/expert_state.h"
#include "experts/pass_cost.h"
#include "experts/pass_rates.h"
#include "experts/stream_pass.h"
#include "experts/touched_pass.h"
#include "experts/warm_cache.h"

namespace sluice {

/// What one prefill pass did.
struct PassRecord {
  PassWay way = PassWay::kStream;
  int64_t rows = 0;
  int64_t chunks = 1;
  int64_t resident_rows = 0;  // at its begin
  uint64_t streamed_bytes = 0;
  int64_t cpu_experts = 0;     // of the others, those that were left to the CPU
  double predicted_bytes = 0;  // as the way was chosen
  double predicted_ms = 0, actual_ms = 0;
  std::string fallback;  // why a forced way was not taken
};

/// All passes of one way.
struct PassTotals {
  uint64_t passes = 0, rows = 0, streamed_bytes = 0;
  double predicted_ms = 0, actual_ms = 0;
};

inline constexpr size_t kPassHistory = 256;

/// Of one layer, over the executor's life.
struct ExpertLayerReport {
  // Decode and short prompts: routed = hits + misses (fetched) + cpu (computed where they lie).
  uint64_t routed = 0, hits = 0, misses = 0, cpu = 0, predicted = 0, predicted_used = 0;
  uint64_t stalls = 0;  // of these forwards, those that waited for a miss of this layer
  uint64_t touched_distinct = 0, touched_misses = 0, touched_cpu = 0;
  ForecastCounters forecast;
  uint64_t row_bytes = 0;
  uint64_t streamed_cpu = 0, streamed_cpu_rows = 0;  // of streaming passes: StreamCounters
  uint64_t late = 0;       // of predicted_used, experts that the layer had to wait for
  uint64_t duplicate = 0;  // experts that crossed the link although they lay in a slot or were on their way
};

struct ExpertReport {
  int64_t slots = 0, ring_slots = 0;
  std::vector<ExpertLayerReport> layers;
  std::vector<PassRecord> passes;            // the last kPassHistory
  std::array<PassTotals, kPassWays> totals;  // of all, by way
  CpuReport cpu;
  uint64_t decode_steps = 0;
  int32_t lookahead_budget = 0;  // predictions a layer and step, now
  FillCount warm, idle;          // experts that were put into empty slots at the start, and while idle
  uint64_t resizes = 0;
  uint64_t demand_bytes = 0, streamed_bytes = 0, predicted_bytes = 0, predicted_used_bytes = 0,
           touched_bytes = 0, late_bytes = 0, duplicate_bytes = 0;
};

/// Keeps experts in slots and makes what a layer routes to computable. Everything runs on streams of one
/// device; all writers of the slot maps are on the compute stream. Not thread-safe.
class ResidentExperts final : public MoeExecutor {
 public:
  /// `rows` outlive the executor; max_rows is the longest batch. settings.slots > 0. Throws Error.
  ResidentExperts(Device& device, Stream& compute, std::span<const LayerRows> rows, const ExpertShape& shape,
                  const ExpertSettings& settings, int64_t max_rows);

  /// How many of the next `rows` tokens of a prompt should go together: one chunk, or a group of chunks of at
  /// most `most` tokens where each expert then crosses the link once for all of them.
  int64_t rows_together(int64_t rows, int64_t chunk_rows, int64_t most) const;
  /// Whether blocks of one run_blocks() need outputs of their own.
  bool splits_layers() const { return stream_.splits_layers(); }

  /// Brackets one forward of `rows` tokens. A decode step may run between the layers of a prefill pass, if
  /// slots - ring slots >= min_slots(). begin_decode() throws Error kInvalidArgument inside a streaming pass
  /// without epoch invalidation, where nothing protects the slots that the pass counts on.
  void begin_decode(int64_t rows);
  void end_decode();
  /// end_decode() in two parts, for steps that run as a graph: the last operations of a step, which the graph
  /// holds; and what the host notes of a step whose operations all ran as one.
  void join_decode();
  void end_recorded_decode();
  /// What the operations of a decode step depend on beside its batch: steps of one kind may run as one graph.
  /// Nothing where a step cannot be recorded as it is now.
  struct StepKind {
    uint64_t resizes = 0;
    int32_t predictions = 0;
    auto operator<=>(const StepKind&) const = default;
  };
  std::optional<StepKind> step_kind() const;
  /// A prefill of rows > chunk_rows is a group: each layer is one run_blocks() of all its chunks.
  void begin_prefill(int64_t rows, int64_t chunk_rows);
  void begin_prefill(int64_t rows) { begin_prefill(rows, rows); }
  void end_prefill();
  /// In place of end_decode() or end_prefill() where an error ended the forward: joins what is under way and
  /// closes the pass, so that the next forward finds everything as usual.
  void give_up_decode();
  void give_up_prefill();

  /// Between forwards, also while serving; throw Error kInvalidArgument inside one.
  /// fill_from: see WarmCache. resize sets the number of slots; what lies in slots that stay is kept. It
  /// throws with everything as it was: kInvalidArgument for numbers that do not fit the model or the ring,
  /// kOutOfMemory.
  FillCount fill_from(std::span<const Resident> residents);
  FillCount fill_idle(size_t budget_bytes);
  std::vector<Resident> residency();
  void resize(int64_t slots);
  int64_t slots() const { return state_.slots(); }

  bool wants_lookahead() const override { return current_->wants_lookahead(); }
  Stream& fork_lookahead(Stream& compute) override { return current_->fork_lookahead(compute); }
  void run(Stream& compute, const MoeInput& input, float* y) override { current_->run(compute, input, y); }
  void run_blocks(Stream& compute, std::span<const MoeBlock> blocks) override {
    current_->run_blocks(compute, blocks);
  }

  /// After an error that may have left slots without their experts' bytes (a copy that failed while the host
  /// ran ahead): every slot is empty afterwards. Outside of passes.
  void forget_slots();

  /// At the end of a forward, before the host waits for its result: queues what check() looks at, and every
  /// settings().audit_every-th time the audit. No wait of its own.
  void queue_checks();
  /// After that wait: throws the first failure that a slot map noted, or what the audit found.
  void check();
  /// Waits, then what was counted so far.
  ExpertReport report();
  uint64_t audits() const { return audits_; }

  const ExpertSettings& settings() const { return state_.settings; }

 private:
  void measure_link();
  PassQuestion question(int64_t rows, int64_t chunk_rows) const;
  PassRates rates(bool with_cpu) const;
  PassForecast choose(const PassQuestion& question);
  void finish_pass(bool waited);
  void read_touched_counts();
  void note_cpu_pass();
  double pass_ms() const;
  void open_pass(PassWay way, int64_t rows);
  void close_pass();
  void require_idle(const char* what) const;

  ExpertState state_;
  DecodePath decode_;
  StreamPass stream_;
  TouchedPass touched_;
  WarmCache warm_;
  MoeExecutor* current_;
  MoeExecutor* pass_ = nullptr;  // of the running prefill
  RateLearner learner_;
  std::optional<CpuControl> cpu_;
  PassRecord record_;
  double pass_bytes_ = 0;    // as predicted, or as counted
  bool unfinished_ = false;  // everything of a pass is queued, and has not been seen to end
  bool disturbed_ = false;   // a decode step ran inside
  bool cpu_could_ = false;   // the forecast of the pass had a part for the CPU
  CpuPart cpu_part_;         // that it has got
  double absent_part_ = 0;   // PassForecast
  std::unique_ptr<Event> pass_from_, pass_to_, copy_from_, copy_to_;
  std::chrono::steady_clock::time_point pass_start_;
  std::deque<PassRecord> passes_;
  std::array<PassTotals, kPassWays> totals_;
  bool decoding_ = false;
  FillCount warm_filled_, idle_filled_;
  uint64_t resizes_ = 0;
  uint64_t decode_steps_ = 0, steps_ = 0, audits_ = 0;
  HostArray<TransientCounters> touched_counts_;  // of each layer, as of the last touched pass
  uint64_t touched_distinct_ = 0, touched_misses_ = 0, touched_bytes_ = 0;  // that were read before
  int uncounted_ = 0;                                                       // touched passes since
  HostArray<AuditResult> audit_results_;                                    // of each pool
  Buffer audit_memory_;
};

}  // namespace sluice
